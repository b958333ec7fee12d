"""Cluster file sections about hardware: BMCs, and what to install."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rackwright.clusterfile.counted import AddressRule
from rackwright.model.bmc import BmcProtocol, BmcUserName, CertificateDigest, CipherSuite
from rackwright.model.install import DiskRule, InstallSettings
from rackwright.model.options import Frozen
from rackwright.model.strings import SecretName


class BmcSection(Frozen):
    """The BMCs of a group. A group without an address, by rule or in `machines`, has no BMCs."""

    address: AddressRule | None = Field(
        default=None,
        description="Address of the first node's BMC, on a network with purpose `bmc`; the others follow in order.",
    )
    protocol: BmcProtocol | None = Field(
        default=None, description="redfish, or ipmi for BMCs without Redfish."
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="None: 443 for Redfish, 623 for IPMI.")
    user: BmcUserName | None = Field(default=None, description="BMC user name; default: `admin`.")
    password: SecretName | None = Field(
        default=None, description="Name of the password in the secrets store; default: `bmc_password`."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of the CAs that signed the BMCs' certificates, relative to the cluster file.",
    )
    certificate: CertificateDigest | None = Field(
        default=None,
        description="SHA-256 of the BMC's certificate, for a group of one node; larger groups set it in `machines`.",
    )
    cipher_suite: CipherSuite | None = Field(
        default=None,
        description="IPMI only; default: 17 (SHA-256). Use 3 (SHA-1) for BMCs that support nothing stronger.",
    )
    timeout_seconds: int | None = Field(
        default=None,
        ge=1,
        le=600,
        description="Timeout of one request; default: 30. Some BMCs take that long.",
    )


class InstallSection(InstallSettings):
    """What to install on the nodes of a group."""

    disk: DiskRule = Field(default=DiskRule(), description="Disks for the operating system.")
