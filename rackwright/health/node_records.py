"""Sections about everything but GPUs, as the checks read them."""

from __future__ import annotations

from rackwright.health.records import (
    Record,
    counts,
    flag,
    flag_or_none,
    many,
    many_or_none,
    numbers,
    one_or_none,
    real,
    real_or_none,
    whole,
    whole_or_none,
    word,
    word_or_none,
    words,
)


class DkmsModule(Record):
    module: str = word()
    version: str = word()
    kernels: list[str] = words()


class DriverSection(Record):
    version: str | None = word_or_none()
    open: bool | None = flag_or_none()
    modules: list[str] = words()
    dkms: list[DkmsModule] = many(DkmsModule)


class Package(Record):
    name: str = word()
    version: str = word()
    held: bool = flag()


class PackagesSection(Record):
    tool: str = word()
    packages: list[Package] = many(Package)
    broken: list[str] = words()


class Gid(Record):
    gid: str = word()
    type: str | None = word_or_none()
    interface: str | None = word_or_none()


class RdmaPort(Record):
    port: int = whole()
    state: str = word()
    physical: str = word()
    rate_gbps: float = real()
    layer: str = word()
    lid: int = whole()
    sm_lid: int = whole()
    pkeys: list[str] = words()
    gids: list[Gid] = many(Gid)
    counters: dict[str, int] = counts()


class RdmaDevice(Record):
    name: str = word()
    address: str = word()
    board: str = word()
    firmware: str = word()
    node_guid: str = word()
    ports: list[RdmaPort] = many(RdmaPort, most=16)


class InfinibandSection(Record):
    devices: list[RdmaDevice] = many(RdmaDevice, most=512)


class LinkPort(Record):
    device: str = word()
    why: str | None = word_or_none()
    state: str | None = word_or_none()
    effective_ber: float = real()
    raw_ber: float = real()


class LinksSection(Record):
    tool: str | None = word_or_none()
    ports: list[LinkPort] = many(LinkPort)


class BluefieldCard(Record):
    address: str = word()
    """Of the first port."""
    ports: int = whole()
    why: str | None = word_or_none()
    mode: str = word()
    next_mode: str = word()


class BluefieldsSection(Record):
    tool: str | None = word_or_none()
    cards: list[BluefieldCard] = many(BluefieldCard)


class Interface(Record):
    name: str = word()
    state: str = word()
    carrier: bool = flag()
    speed_mbps: int | None = whole_or_none()
    mtu: int = whole()
    address: str | None = word_or_none()
    statistics: dict[str, int] = counts()
    ipv4: list[str] = words()


class BondMember(Record):
    name: str = word()
    up: bool = flag()


class Bond(Record):
    name: str = word()
    members: list[BondMember] = many(BondMember)


class NetworkSection(Record):
    interfaces: list[Interface] = many(Interface)
    bonds: list[Bond] = many(Bond)
    default_gateways: list[str] = words()


class NumaNode(Record):
    node: int = whole()
    cpus: int = whole()
    memory_mib: int = whole()


class CpuSection(Record):
    model: str = word()
    sockets: int = whole()
    cores: int = whole()
    threads: int = whole()
    offline: list[int] = numbers()
    governors: dict[str, int] = counts()
    throttled: int | None = whole_or_none()
    microcodes: list[str] = words()
    clocksource: str = word()
    load: float = real()
    numa: list[NumaNode] = many(NumaNode)


class MemoryController(Record):
    name: str = word()
    corrected: int = whole()
    uncorrected: int = whole()


class MemorySection(Record):
    total_mib: int = whole()
    available_mib: int = whole()
    swap_mib: int = whole()
    corrupted_kib: int = whole()
    controllers: list[MemoryController] = many(MemoryController)


class Slot(Record):
    locator: str = word()
    size_mib: int = whole()
    speed: int = whole()
    configured: int = whole()


class FirmwareSection(Record):
    bios: str = word()
    product: str = word()
    slots: list[Slot] | None = many_or_none(Slot)


class Smart(Record):
    critical_warning: int = whole()
    spare: int = whole()
    spare_least: int = whole()
    used: int = whole()
    media_errors: int = whole()
    temperature_c: int = whole()


class Drive(Record):
    name: str = word()
    address: str = word()
    model: str = word()
    firmware: str = word()
    state: str = word()
    size_gb: int = whole()
    smart: Smart | None = one_or_none(Smart)
    smart_why: str | None = word_or_none()


class NvmeSection(Record):
    drives: list[Drive] = many(Drive, most=512)


class Array(Record):
    name: str = word()
    level: str = word()
    state: str = word()
    degraded: int | None = whole_or_none()
    action: str | None = word_or_none()


class ArraysSection(Record):
    arrays: list[Array] = many(Array)


class Mount(Record):
    target: str = word()
    source: str = word()
    type: str = word()
    read_only: bool = flag()
    seconds: float | None = real_or_none()
    used_percent: float = real()
    inodes_percent: float = real()
    why: str | None = word_or_none()


class MountsSection(Record):
    mounts: list[Mount] = many(Mount)


class SystemSection(Record):
    hostname: str = word()
    os: str = word()
    os_version: str = word()
    kernel: str = word()
    kernels: list[str] = words()
    architecture: str = word()
    command_line: list[str] = words()
    uptime_s: float = real()


class NamingSection(Record):
    hostname: str = word()
    addresses: list[str] = words()


class Waiting(Record):
    pid: int = whole()
    name: str = word()


class ProcessesSection(Record):
    total: int = whole()
    zombies: int = whole()
    waiting: list[Waiting] = many(Waiting)


class ClockSection(Record):
    reference: str = word()
    stratum: int = whole()
    offset_s: float = real()
    leap: str = word()


class Unit(Record):
    name: str = word()
    loaded: str = word()
    active: str = word()
    enabled: str = word()
    restarts: int = whole()
    memlock: str = word()


class ServicesSection(Record):
    units: list[Unit] = many(Unit)
    failed: list[str] = words()
