"""A whole cluster: its roles in the order in which they are applied, each where the cluster file declares it."""
# mypy: allow-redefinition

from pyinfra.context import host

from rackwright.data import options_for
from rackwright.roles.access.deploy import access
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.accounts.deploy import accounts
from rackwright.roles.accounts.options import AccountsOptions
from rackwright.roles.alertmanager.deploy import alertmanager
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.apptainer.deploy import apptainer
from rackwright.roles.apptainer.options import ApptainerOptions
from rackwright.roles.backup.deploy import backup
from rackwright.roles.backup.options import BackupOptions
from rackwright.roles.base.deploy import base
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.beegfs.deploy import beegfs
from rackwright.roles.beegfs.options import BeegfsOptions
from rackwright.roles.blackbox_exporter.deploy import blackbox_exporter
from rackwright.roles.blackbox_exporter.options import BlackboxExporterOptions
from rackwright.roles.cephfs_client.deploy import cephfs_client
from rackwright.roles.cephfs_client.options import CephfsClientOptions
from rackwright.roles.containerd.deploy import containerd
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.cuda.deploy import cuda
from rackwright.roles.cuda.options import CudaOptions
from rackwright.roles.cvmfs.deploy import cvmfs
from rackwright.roles.cvmfs.options import CvmfsOptions
from rackwright.roles.dataset_cache.deploy import dataset_cache
from rackwright.roles.dataset_cache.options import DatasetCacheOptions
from rackwright.roles.dcgm.deploy import dcgm
from rackwright.roles.dcgm.options import DcgmOptions
from rackwright.roles.dcgm_exporter.deploy import dcgm_exporter
from rackwright.roles.dcgm_exporter.options import DcgmExporterOptions
from rackwright.roles.dns.deploy import dns
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.docker.deploy import docker
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.efa.deploy import efa
from rackwright.roles.efa.options import EfaOptions
from rackwright.roles.enroot_pyxis.deploy import enroot_pyxis
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions
from rackwright.roles.fabricmanager.deploy import fabricmanager
from rackwright.roles.fabricmanager.options import FabricmanagerOptions
from rackwright.roles.firewall.deploy import firewall
from rackwright.roles.firewall.options import FirewallOptions
from rackwright.roles.gdrcopy.deploy import gdrcopy
from rackwright.roles.gdrcopy.options import GdrcopyOptions
from rackwright.roles.gpfs_client.deploy import gpfs_client
from rackwright.roles.gpfs_client.options import GpfsClientOptions
from rackwright.roles.gpudirect.deploy import gpudirect
from rackwright.roles.gpudirect.options import GpudirectOptions
from rackwright.roles.grafana.deploy import grafana
from rackwright.roles.grafana.options import GrafanaOptions
from rackwright.roles.health.deploy import health
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.roles.home.deploy import home
from rackwright.roles.home.options import HomeOptions
from rackwright.roles.hpc_stack.deploy import hpc_stack
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.imex.deploy import imex
from rackwright.roles.imex.options import ImexOptions
from rackwright.roles.integrity.deploy import integrity
from rackwright.roles.integrity.options import IntegrityOptions
from rackwright.roles.ipmi_exporter.deploy import ipmi_exporter
from rackwright.roles.ipmi_exporter.options import IpmiExporterOptions
from rackwright.roles.ipoib.deploy import ipoib
from rackwright.roles.ipoib.options import IpoibOptions
from rackwright.roles.irdma.deploy import irdma
from rackwright.roles.irdma.options import IrdmaOptions
from rackwright.roles.job_metrics.deploy import job_metrics
from rackwright.roles.job_metrics.options import JobMetricsOptions
from rackwright.roles.kernel.deploy import kernel
from rackwright.roles.kernel.options import KernelOptions
from rackwright.roles.lldp.deploy import lldp
from rackwright.roles.lldp.options import LldpOptions
from rackwright.roles.logs.deploy import logs
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.lustre_client.deploy import lustre_client
from rackwright.roles.lustre_client.options import LustreClientOptions
from rackwright.roles.mig.deploy import mig
from rackwright.roles.mig.options import MigOptions
from rackwright.roles.mysqld_exporter.deploy import mysqld_exporter
from rackwright.roles.mysqld_exporter.options import MysqldExporterOptions
from rackwright.roles.nccl.deploy import nccl
from rackwright.roles.nccl.options import NcclOptions
from rackwright.roles.network.deploy import network
from rackwright.roles.network.options import NetworkOptions
from rackwright.roles.nfs_client.deploy import nfs_client
from rackwright.roles.nfs_client.options import NfsClientOptions
from rackwright.roles.nfs_server.deploy import nfs_server
from rackwright.roles.nfs_server.options import NfsServerOptions
from rackwright.roles.node_exporter.deploy import node_exporter
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.nvidia_container_toolkit.deploy import nvidia_container_toolkit
from rackwright.roles.nvidia_container_toolkit.options import NvidiaContainerToolkitOptions
from rackwright.roles.nvidia_driver.deploy import nvidia_driver
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from rackwright.roles.object_store.deploy import object_store
from rackwright.roles.object_store.options import ObjectStoreOptions
from rackwright.roles.opensm.deploy import opensm
from rackwright.roles.opensm.options import OpensmOptions
from rackwright.roles.persistence.deploy import persistence
from rackwright.roles.persistence.options import PersistenceOptions
from rackwright.roles.podman.deploy import podman
from rackwright.roles.podman.options import PodmanOptions
from rackwright.roles.prometheus.deploy import prometheus
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.proxy.deploy import proxy
from rackwright.roles.proxy.options import ProxyOptions
from rackwright.roles.rdma.deploy import rdma
from rackwright.roles.rdma.options import RdmaOptions
from rackwright.roles.registry_cache.deploy import registry_cache
from rackwright.roles.registry_cache.options import RegistryCacheOptions
from rackwright.roles.roce.deploy import roce
from rackwright.roles.roce.options import RoceOptions
from rackwright.roles.scratch.deploy import scratch
from rackwright.roles.scratch.options import ScratchOptions
from rackwright.roles.site_ca.deploy import site_ca
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.slurm_exporter.deploy import slurm_exporter
from rackwright.roles.slurm_exporter.options import SlurmExporterOptions
from rackwright.roles.snmp_exporter.deploy import snmp_exporter
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions
from rackwright.roles.software.deploy import software
from rackwright.roles.software.options import SoftwareOptions
from rackwright.roles.spectrum_x.deploy import spectrum_x
from rackwright.roles.spectrum_x.options import SpectrumXOptions
from rackwright.roles.storage_bench.deploy import storage_bench
from rackwright.roles.storage_bench.options import StorageBenchOptions
from rackwright.roles.storage_layout.deploy import storage_layout
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.time.deploy import time
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.tuning.deploy import tuning
from rackwright.roles.tuning.options import TuningOptions
from rackwright.roles.weka_client.deploy import weka_client
from rackwright.roles.weka_client.options import WekaClientOptions
from rackwright.shipped import shipped_roles

if (o := options_for(host, "base", BaseOptions)) is not None:
    base(options=o)
if (o := options_for(host, "network", NetworkOptions)) is not None:
    network(options=o)
if (o := options_for(host, "access", AccessOptions)) is not None:
    access(options=o)
if (o := options_for(host, "firewall", FirewallOptions)) is not None:
    firewall(options=o)
if (o := options_for(host, "lldp", LldpOptions)) is not None:
    lldp(options=o)
if (o := options_for(host, "tuning", TuningOptions)) is not None:
    tuning(options=o)
if (o := options_for(host, "time", TimeOptions)) is not None:
    time(options=o)
if (o := options_for(host, "dns", DnsOptions)) is not None:
    dns(options=o)
if (o := options_for(host, "proxy", ProxyOptions)) is not None:
    proxy(options=o)
if (o := options_for(host, "site_ca", SiteCaOptions)) is not None:
    site_ca(options=o)
if (o := options_for(host, "accounts", AccountsOptions)) is not None:
    accounts(options=o)
if (o := options_for(host, "kernel", KernelOptions)) is not None:
    kernel(options=o)
if (o := options_for(host, "rdma", RdmaOptions)) is not None:
    rdma(options=o)
if (o := options_for(host, "irdma", IrdmaOptions)) is not None:
    irdma(options=o)
if (o := options_for(host, "roce", RoceOptions)) is not None:
    roce(options=o)
if (o := options_for(host, "spectrum_x", SpectrumXOptions)) is not None:
    spectrum_x(options=o)
if (o := options_for(host, "efa", EfaOptions)) is not None:
    efa(options=o)
if (o := options_for(host, "opensm", OpensmOptions)) is not None:
    opensm(options=o)
if (o := options_for(host, "ipoib", IpoibOptions)) is not None:
    ipoib(options=o)
if (o := options_for(host, "storage_layout", StorageLayoutOptions)) is not None:
    storage_layout(options=o)
if (o := options_for(host, "nfs_server", NfsServerOptions)) is not None:
    nfs_server(options=o)
if (o := options_for(host, "nfs_client", NfsClientOptions)) is not None:
    nfs_client(options=o)
if (o := options_for(host, "scratch", ScratchOptions)) is not None:
    scratch(options=o)
if (o := options_for(host, "dataset_cache", DatasetCacheOptions)) is not None:
    dataset_cache(options=o)
if (o := options_for(host, "lustre_client", LustreClientOptions)) is not None:
    lustre_client(options=o)
if (o := options_for(host, "beegfs", BeegfsOptions)) is not None:
    beegfs(options=o)
if (o := options_for(host, "weka_client", WekaClientOptions)) is not None:
    weka_client(options=o)
if (o := options_for(host, "cephfs_client", CephfsClientOptions)) is not None:
    cephfs_client(options=o)
if (o := options_for(host, "gpfs_client", GpfsClientOptions)) is not None:
    gpfs_client(options=o)
if (o := options_for(host, "nvidia_driver", NvidiaDriverOptions)) is not None:
    nvidia_driver(options=o)
if (o := options_for(host, "persistence", PersistenceOptions)) is not None:
    persistence(options=o)
if (o := options_for(host, "cuda", CudaOptions)) is not None:
    cuda(options=o)
if (o := options_for(host, "fabricmanager", FabricmanagerOptions)) is not None:
    fabricmanager(options=o)
if (o := options_for(host, "imex", ImexOptions)) is not None:
    imex(options=o)
if (o := options_for(host, "mig", MigOptions)) is not None:
    mig(options=o)
if (o := options_for(host, "dcgm", DcgmOptions)) is not None:
    dcgm(options=o)
if (o := options_for(host, "gdrcopy", GdrcopyOptions)) is not None:
    gdrcopy(options=o)
if (o := options_for(host, "gpudirect", GpudirectOptions)) is not None:
    gpudirect(options=o)
if (o := options_for(host, "nvidia_container_toolkit", NvidiaContainerToolkitOptions)) is not None:
    nvidia_container_toolkit(options=o)
if (o := options_for(host, "registry_cache", RegistryCacheOptions)) is not None:
    registry_cache(options=o)
if (o := options_for(host, "containerd", ContainerdOptions)) is not None:
    containerd(options=o)
if (o := options_for(host, "docker", DockerOptions)) is not None:
    docker(options=o)
if (o := options_for(host, "podman", PodmanOptions)) is not None:
    podman(options=o)
if (o := options_for(host, "apptainer", ApptainerOptions)) is not None:
    apptainer(options=o)
if (o := options_for(host, "hpc_stack", HpcStackOptions)) is not None:
    hpc_stack(options=o)
if (o := options_for(host, "storage_bench", StorageBenchOptions)) is not None:
    storage_bench(options=o)
if (o := options_for(host, "nccl", NcclOptions)) is not None:
    nccl(options=o)
if (o := options_for(host, "home", HomeOptions)) is not None:
    home(options=o)
if (o := options_for(host, "cvmfs", CvmfsOptions)) is not None:
    cvmfs(options=o)
if (o := options_for(host, "object_store", ObjectStoreOptions)) is not None:
    object_store(options=o)
if (o := options_for(host, "software", SoftwareOptions)) is not None:
    software(options=o)
if (o := options_for(host, "logs", LogsOptions)) is not None:
    logs(options=o)
shipped_roles("workloads")  # what runs jobs: deploys/workloads.py
if (o := options_for(host, "health", HealthRoleOptions)) is not None:
    health(options=o)
if (o := options_for(host, "enroot_pyxis", EnrootPyxisOptions)) is not None:
    enroot_pyxis(options=o)
if (o := options_for(host, "slurm_exporter", SlurmExporterOptions)) is not None:
    slurm_exporter(options=o)
if (o := options_for(host, "node_exporter", NodeExporterOptions)) is not None:
    node_exporter(options=o)
if (o := options_for(host, "dcgm_exporter", DcgmExporterOptions)) is not None:
    dcgm_exporter(options=o)
if (o := options_for(host, "blackbox_exporter", BlackboxExporterOptions)) is not None:
    blackbox_exporter(options=o)
if (o := options_for(host, "mysqld_exporter", MysqldExporterOptions)) is not None:
    mysqld_exporter(options=o)
if (o := options_for(host, "ipmi_exporter", IpmiExporterOptions)) is not None:
    ipmi_exporter(options=o)
if (o := options_for(host, "snmp_exporter", SnmpExporterOptions)) is not None:
    snmp_exporter(options=o)
if (o := options_for(host, "prometheus", PrometheusOptions)) is not None:
    prometheus(options=o)
if (o := options_for(host, "job_metrics", JobMetricsOptions)) is not None:
    job_metrics(options=o)
if (o := options_for(host, "alertmanager", AlertmanagerOptions)) is not None:
    alertmanager(options=o)
if (o := options_for(host, "grafana", GrafanaOptions)) is not None:
    grafana(options=o)
if (o := options_for(host, "backup", BackupOptions)) is not None:
    backup(options=o)
if (o := options_for(host, "integrity", IntegrityOptions)) is not None:
    integrity(options=o)
