"""Add-ons of Kubernetes: other projects' manifests and charts, at one version each."""

from __future__ import annotations

from pydantic import Field, model_validator

from rackwright.catalog.tables import Table
from rackwright.model.options import Frozen
from rackwright.model.sku import Source


class Chart(Frozen):
    """Where `helm pull` finds a chart."""

    repository: str = Field(pattern=r"^(oci|https)://[A-Za-z0-9./_-]+$")
    name: str = Field(pattern=r"^[a-z0-9-]+$")
    archive: str | None = Field(
        default=None, pattern=r"^https://\S+\.tgz$", description="URL of the chart itself."
    )

    def pull(self, version: str) -> str:
        """The command that fetches it."""
        if self.repository.startswith("oci://"):
            return f"helm pull {self.repository}/{self.name} --version {version}"
        return f"helm pull {self.name} --repo {self.repository} --version {version}"


class Addon(Frozen):
    """One add-on."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: str = Field(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+$")
    namespace: str = Field(pattern=r"^[a-z0-9-]+$")
    kubernetes_from: int | None = Field(
        default=None, description="First minor release of Kubernetes 1 that it supports; None: not stated."
    )
    manifest: str | None = Field(default=None, pattern=r"^https://\S+\.ya?ml$")
    chart: Chart | None = None
    images: tuple[str, ...] = ()
    privileged: bool = Field(
        default=False, description="Its pods need the Pod Security level `privileged` in its namespace."
    )
    source: Source

    @model_validator(mode="after")
    def _comes_somehow(self) -> Addon:
        if self.manifest is None and self.chart is None:
            raise ValueError("An add-on has a manifest or a chart.")
        return self


class AddonTable(Table):
    """Add-ons by name."""

    rows: tuple[Addon, ...]

    def find(self, name: str) -> Addon | None:
        """The row of that name."""
        return next((row for row in self.rows if row.name == name), None)
