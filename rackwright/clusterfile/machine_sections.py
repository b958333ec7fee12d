"""The sections of a cluster file about machines: their BMCs, and what is installed on them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rackwright.clusterfile.counted import AddressRule
from rackwright.model.bmc import BmcProtocol, BmcUserName, CertificateDigest, CipherSuite
from rackwright.model.install import DiskRule, InstallSettings
from rackwright.model.options import Frozen
from rackwright.model.strings import SecretName


class BmcSection(Frozen):
    """The BMCs of a group. A group that gives no address, by rule or in `machines`, has none."""

    address: AddressRule | None = Field(
        default=None,
        description="Address of the first node's BMC, in a network of purpose `bmc`; the others follow in order.",
    )
    protocol: BmcProtocol | None = Field(
        default=None, description="redfish, or ipmi for BMCs without Redfish."
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="None: 443 for Redfish, 623 for IPMI.")
    user: BmcUserName | None = Field(default=None, description="User of the BMC; `admin` if left out.")
    password: SecretName | None = Field(
        default=None, description="Name of the password in the secrets store; `bmc_password` if left out."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of the CAs that signed the BMCs' certificates, relative to the cluster file.",
    )
    certificate: CertificateDigest | None = Field(
        default=None,
        description="SHA-256 of the BMC's own certificate, for a group of one node; others have it in `machines`.",
    )
    cipher_suite: CipherSuite | None = Field(
        default=None,
        description="Of IPMI; 17 (SHA-256) if left out. 3 (SHA-1) is for BMCs that know no better.",
    )
    timeout_seconds: int | None = Field(
        default=None, ge=1, le=600, description="Of one request; 30 if left out. Some BMCs take that long."
    )


class InstallSection(InstallSettings):
    """What is installed on the nodes of a group."""

    disk: DiskRule = Field(default=DiskRule(), description="Which disks get the operating system.")
