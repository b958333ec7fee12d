"""Templates, pipelines, policies and saved objects of a search cluster: compares them with the declared ones, and writes them.

logs-objects --check    print `as declared`, or what differs
logs-objects --apply    write what differs
logs-objects --newest   print the time of each node's newest line, as JSON

Both products add defaults to what they receive, and return numbers as text: an object is as declared if it contains
everything that is declared. Standard library, Python 3.9 or newer; runs as root on the log server.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
from typing import Any

from rackwright.logs import read_search
from rackwright.logs.answer import Unreadable
from rackwright.logs.https import Asker

SETTINGS = "/etc/rackwright/logs/objects.json"
AS_DECLARED = "as declared"
_BOUNDARY = "rackwright-saved-objects"


def holds(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - of JSON
    """Whether everything that is wanted is there."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and holds(found[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(map(holds, found, wanted))
    return not isinstance(found, (dict, list)) and str(found).lower() == str(wanted).lower()


def at(answer: Any, path: list[Any]) -> Any:  # noqa: ANN401 - of JSON
    """The part of an answer at a path of keys and indices; None if there is none."""
    for step in path:
        try:
            answer = answer[step]
        except (KeyError, IndexError, TypeError):
            return None
    return answer


class Objects:
    """The declared objects, and the cluster."""

    def __init__(self, settings: dict[str, Any]) -> None:
        with open(settings["login"], encoding="utf-8") as file:
            login = json.load(file)
        self._asker = Asker(settings["ca"], login=(login["user"], login["password"]))
        self._settings = settings
        self._url = ""

    def differing(self) -> list[str]:
        """Names of those that are not as declared."""
        found = [
            one["path"] for one in self._settings["objects"] if not holds(self._there(one)[0], one["body"])
        ]
        saved = self._settings["saved"]
        if saved["url"] and not self._saved_are_there(saved):
            found.append("saved objects")
        return found

    def put(self, names: list[str]) -> None:
        """Write them; Unreadable if one is refused."""
        for one in self._settings["objects"]:
            if one["path"] in names:
                _, answer = self._there(one)
                query = ""
                if one["versioned"] and isinstance(answer, dict) and "_seq_no" in answer:
                    at_version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
                    query = f"?{urllib.parse.urlencode(at_version)}"
                self._send(
                    "PUT", f"{self._first_url()}{one['path']}{query}", json.dumps(one["body"]).encode()
                )
        if "saved objects" in names:
            self._import(self._settings["saved"])

    def _first_url(self) -> str:
        """The first address that answers."""
        problems = []
        for url in [self._url] if self._url else self._settings["urls"]:
            try:
                self._asker.ask(url)
            except Unreadable as error:
                problems.append(str(error))
            else:
                self._url = url
                return url
        raise Unreadable("; ".join(problems))

    def _there(self, one: dict[str, Any]) -> tuple[Any, Any]:
        """(the object as it exists, the whole answer)."""
        status, answer = self._asker.ask(f"{self._first_url()}{one['path']}")
        if status == 404:
            return None, None
        if status != 200:
            raise Unreadable(f"{one['path']}: {status}: {str(answer)[:200]}")
        return at(answer, one["found"]), answer

    def _send(self, method: str, url: str, data: bytes, form: str = "application/json") -> Any:  # noqa: ANN401
        status, answer = self._asker.ask(url, data, method=method, form=form)
        if status not in (200, 201):
            raise Unreadable(f"{url}: {status}: {str(answer)[:300]}")
        return answer

    def _saved_are_there(self, saved: dict[str, Any]) -> bool:
        """By their export, which both products support. One missing object fails the whole export."""
        for one in saved["objects"]:
            wanted = {"objects": [{"type": one["type"], "id": one["id"]}], "excludeExportDetails": True}
            url = f"{saved['url']}/api/saved_objects/_export"
            status, answer = self._asker.ask(url, json.dumps(wanted).encode(), method="POST")
            if status == 400:
                return False
            if status != 200:
                raise Unreadable(f"{url}: {status}: {str(answer)[:200]}")
            if not holds(answer, {"type": one["type"], "id": one["id"], "attributes": one["attributes"]}):
                return False
        return True

    def _import(self, saved: dict[str, Any]) -> None:
        lines = "".join(json.dumps(one) + "\n" for one in saved["objects"])
        disposition = 'Content-Disposition: form-data; name="file"; filename="rackwright.ndjson"'
        parts = [
            f"--{_BOUNDARY}",
            disposition,
            "Content-Type: application/ndjson",
            "",
            lines,
            f"--{_BOUNDARY}--",
            "",
        ]
        form = f"multipart/form-data; boundary={_BOUNDARY}"
        url = f"{saved['url']}/api/saved_objects/_import?overwrite=true"
        answer = self._send("POST", url, "\r\n".join(parts).encode(), form)
        if not isinstance(answer, dict) or answer.get("success") is not True:
            raise Unreadable(f"{url}: {str(answer)[:300]}")


def main() -> None:
    """Exit status 1 if the cluster does not answer, or refuses."""
    try:
        with open(SETTINGS, encoding="utf-8") as file:
            settings = json.load(file)
        if sys.argv[1:] == ["--newest"]:
            newest = read_search.last(settings, settings["nodes"])
            print(json.dumps({"version": 1, "now": time.time(), "newest": newest}))
            return
        objects = Objects(settings)
        names = objects.differing()
        if sys.argv[1:] == ["--apply"] and names:
            objects.put(names)
            names = objects.differing()
    except (Unreadable, OSError, ValueError, KeyError) as error:
        sys.exit(str(error))
    print(f"differ: {', '.join(names)}" if names else AS_DECLARED)


if __name__ == "__main__":
    main()
