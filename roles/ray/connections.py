"""Checks of who may connect: TLS, the token, Redis' password."""

from __future__ import annotations

from rackwright.boundary import printable
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.model.services import IssuesCertificates
from rackwright.roles.ray import places
from rackwright.roles.ray.options import RayOptions

# A server without TLS answers HTTP/2's preface with a SETTINGS frame (type 4, RFC 9113, 3.4). Then the same port has to
# complete a handshake that this node's trusted CA vouches for.
PLAIN = """\
import socket, ssl, sys
host, port, ca, chain, key = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
try:
    with socket.create_connection((host, port), 10) as plain:
        plain.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\x04" + bytes(5))
        try:
            answer = plain.recv(64)
        except OSError:
            answer = b""
    if len(answer) > 8 and answer[3] == 4:
        print("plain"); sys.exit()
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(chain, key)
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((host, port), 10) as raw, context.wrap_socket(raw, server_hostname=host) as tls:
        print("tls " + str(tls.version()))
except ssl.SSLError as error:
    print("untrusted " + str(error.reason))
except OSError as error:
    print("unreachable " + str(error))
"""
ANONYMOUS = """\
import os
os.environ["RAY_AUTH_MODE"] = "disabled"
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=os.environ["RAY_ADDRESS"]).get_all_node_info(timeout=10)
    print("answers")
except AuthenticationError:
    print("refuses")
"""
_HTTP = (
    "curl --silent --show-error --noproxy '*' --output /dev/null --max-time 20 --write-out '%%{http_code}' %s"
)
# The token goes from its file to curl's stdin, and into no argument: printf is the shell's own.
_WITH_TOKEN = """\
token=$(cat "$1")
printf 'header = "Authorization: Bearer %s"\\n' "$token" |
  curl --config - --silent --show-error --noproxy '*' --output /dev/null --max-time 20 --write-out '%{http_code}' "$2"
"""
REDIS = """\
REDISCLI_AUTH=; [ -z "$2" ] || REDISCLI_AUTH=$(cat "$2"); export REDISCLI_AUTH
[ -n "$REDISCLI_AUTH" ] || unset REDISCLI_AUTH
timeout 10 redis-cli -h 127.0.0.1 -p "$1" ping 2>&1
"""
_NOT_CONNECTED = 7


def refuses_plain(context: CheckContext[RayOptions]) -> str:
    """The raylet of every node, and the head's GCS."""
    cluster, node, options = context.cluster, context.node, context.options
    ca = node.offers(IssuesCertificates)
    if ca is None:
        raise Undetermined("the site has no CA")
    certificate = options.certificates(cluster, node)[0]
    address = str(cluster.management_address(node))
    ports = [options.ports.node_manager, *([options.ports.gcs] if options.is_head(node) else [])]
    for port in ports:
        found = context.output(
            "timeout 50 python3 -IS -c %s %s %s %s %s %s",
            PLAIN,
            address,
            str(port),
            ca.trust_file,
            certificate.chain,
            certificate.key,
        ).strip()
        word, _, rest = found.partition(" ")
        if word == "plain":
            fail(f"{address}:{port} answers without TLS")
        if word == "untrusted":
            fail(f"{address}:{port} has a certificate that this node does not trust: {printable(rest, 100)}")
        if word == "unreachable":
            fail(f"{address}:{port} does not answer: {printable(rest, 100)}")
        if word != "tls":
            raise Undetermined(f"the answer of {address}:{port} is {printable(found, 100)!r}")
    return f"TLS alone at {', '.join(f'{address}:{port}' for port in ports)}"


def refuses_anonymous(context: CheckContext[RayOptions]) -> str:
    """The GCS, over TLS."""
    found = context.output("timeout 50 %s -c %s", places.WITH_RAY, ANONYMOUS).strip().splitlines()[-1:]
    if found == ["answers"]:
        fail("the GCS answers a client without the token")
    if found != ["refuses"]:
        raise Undetermined(f"the GCS answers {printable(' '.join(found), 100)!r}")
    return "a client without the token is refused"


def dashboard(context: CheckContext[RayOptions]) -> str:
    """Content needs the token; with it there is an answer, so that a broken dashboard does not count as a refusal."""
    url = f"http://127.0.0.1:{context.options.ports.dashboard}/nodes?view=summary"
    result = context.host.run(_HTTP, url)
    if result.rc == _NOT_CONNECTED:
        fail(f"no answer at {url}")
    if result.rc != 0:
        raise Undetermined(f"curl of {url} exited {result.rc}: {printable(result.stderr.strip(), 200)}")
    if result.stdout == "200":
        fail(f"{url} answers without the token")
    if result.stdout not in ("401", "403"):
        raise Undetermined(f"{url} answers {result.stdout!r}, neither content nor a refusal")
    with_token = context.output("sh -c %s sh %s %s", _WITH_TOKEN, places.TOKEN, url).strip()
    if with_token != "200":
        fail(f"{url} answers {printable(with_token, 40)!r} to a request with the token")
    return f"{url} requires the token"


def redis(context: CheckContext[RayOptions]) -> str:
    """Without its password, and then with it."""
    port = str(context.options.ports.redis)
    without = context.host.run("sh -c %s sh %s %s", REDIS, port, "").stdout.strip()
    if without == "PONG":
        fail(f"Redis at 127.0.0.1:{port} answers without a password")
    if "NOAUTH" not in without:
        raise Undetermined(f"Redis at 127.0.0.1:{port} answers {printable(without, 100)!r}")
    with_it = context.host.run("sh -c %s sh %s %s", REDIS, port, places.REDIS_PASSWORD).stdout.strip()
    if with_it != "PONG":
        fail(f"Redis answers {printable(with_it, 100)!r} to its password")
    return f"127.0.0.1:{port} requires its password"
