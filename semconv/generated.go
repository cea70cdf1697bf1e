// Code generated from registry/*.yaml by tools/semconv; DO NOT EDIT.

package semconv

import "go.opentelemetry.io/otel/attribute"

// SchemaURL identifies this version of the names. Every instrumentation scope of ours carries it.
const SchemaURL = "https://stallspan.github.io/schemas/0.2.0"

// Attribute keys.
const (
	// Identifier of the job's container. (string)
	ContainerIDKey = attribute.Key("container.id")
	// Number of the logical CPU, from 0. (int)
	CPULogicalNumberKey = attribute.Key("cpu.logical_number")
	// Mode of the CPU. (string, one of the values below)
	CPUModeKey = attribute.Key("cpu.mode")
	// Direction. (string, one of the values below)
	DiskIODirectionKey = attribute.Key("disk.io.direction")
	// Kind of error. XID errors are xid_79 and similar, with NVIDIA's code. (string, one of the values below)
	ErrorTypeKey = attribute.Key("error.type")
	// The file or folder that the load read. (string)
	FilePathKey = attribute.Key("file.path")
	// Identifier of the machine, the same after a reboot. (string)
	HostIDKey = attribute.Key("host.id")
	// Host name of the machine. (string)
	HostNameKey = attribute.Key("host.name")
	// Version of the GPU's driver. (string)
	HwDriverVersionKey = attribute.Key("hw.driver_version")
	// Version of the drive's firmware. (string)
	HwFirmwareVersionKey = attribute.Key("hw.firmware_version")
	// Engine of the GPU. (string, one of the values below)
	HwGPUTaskKey = attribute.Key("hw.gpu.task")
	// Identifier of the GPU or drive, the same after a reboot. For a drive, WWN or EUI, else model and serial number. (string)
	HwIDKey = attribute.Key("hw.id")
	// Kind of limit; absent on values that are no limit. (string, one of the values below)
	HwLimitTypeKey = attribute.Key("hw.limit_type")
	// Model of the GPU or drive. (string)
	HwModelKey = attribute.Key("hw.model")
	// Name of the GPU or drive for people. (string)
	HwNameKey = attribute.Key("hw.name")
	// For a MIG slice, the identifier of its GPU. (string)
	HwParentKey = attribute.Key("hw.parent")
	// Name of the health attribute. (string)
	HwPhysicalDiskSmartAttributeKey = attribute.Key("hw.physical_disk.smart_attribute")
	// Which part of the endurance. (string, one of the values below)
	HwPhysicalDiskStateKey = attribute.Key("hw.physical_disk.state")
	// HDD for a rotating drive, SSD for one that certainly does not rotate. (string)
	HwPhysicalDiskTypeKey = attribute.Key("hw.physical_disk.type")
	// Where the temperature is measured: GPU chip, GPU memory, or a sensor of an NVMe drive. Absent for a drive as a whole. (string)
	HwSensorLocationKey = attribute.Key("hw.sensor_location")
	// Serial number of the drive. (string)
	HwSerialNumberKey = attribute.Key("hw.serial_number")
	// The state of this series. (string, one of the values below)
	HwStateKey = attribute.Key("hw.state")
	// Kind of hardware. (string, one of the values below)
	HwTypeKey = attribute.Key("hw.type")
	// Maker of the GPU. (string)
	HwVendorKey = attribute.Key("hw.vendor")
	// Name of the cluster, from the Collector or from the agent's OTEL_RESOURCE_ATTRIBUTES. (string)
	K8SClusterNameKey = attribute.Key("k8s.cluster.name")
	// Name of the job's container in its pod. (string)
	K8SContainerNameKey = attribute.Key("k8s.container.name")
	// Namespace of the job's pod. (string)
	K8SNamespaceNameKey = attribute.Key("k8s.namespace.name")
	// Name of the job's pod. (string)
	K8SPodNameKey = attribute.Key("k8s.pod.name")
	// Identifier of the job's pod. (string)
	K8SPodUIDKey = attribute.Key("k8s.pod.uid")
	// Direction, as seen by the GPU or job. (string, one of the values below)
	NetworkIODirectionKey = attribute.Key("network.io.direction")
	// Number of the training's process on its machine. (string)
	NvDlLocalRankKey = attribute.Key("nv.dl.local_rank")
	// Number of the training's process. (string)
	NvDlRankKey = attribute.Key("nv.dl.rank")
	// The disk or mount for which a window waited, as in service.peer.name. (string)
	PeerServiceKey = attribute.Key("peer.service")
	// Name of the job's program. (string)
	ProcessExecutableNameKey = attribute.Key("process.executable.name")
	// Exit code of the wrapped program. (int)
	ProcessExitCodeKey = attribute.Key("process.exit.code")
	// User who runs the job. (string)
	ProcessOwnerKey = attribute.Key("process.owner")
	// Process number in the host's namespace. (int)
	ProcessPIDKey = attribute.Key("process.pid")
	// Identifies one sender. (string)
	ServiceInstanceIDKey = attribute.Key("service.instance.id")
	// The service; OTEL_SERVICE_NAME can set it. (string)
	ServiceNameKey = attribute.Key("service.name")
	// The disk or mount for which a window waited. (string)
	ServicePeerNameKey = attribute.Key("service.peer.name")
	// Number of the Slurm job. (string)
	SlurmJobIDKey = attribute.Key("slurm.job.id")
	// Name of the Slurm job. (string)
	SlurmJobNameKey = attribute.Key("slurm.job.name")
	// Identifier of the Slurm job, another one after each requeue. (string)
	SlurmSluidKey = attribute.Key("slurm.sluid")
	// Step of the Slurm job: a number, batch, extern or interactive. (string)
	SlurmStepIDKey = attribute.Key("slurm.step.id")
	// The part of Stallspan that fails: a source of readings, or the export to the OTLP backend. (string)
	AgentPartKey = attribute.Key("stallspan.agent.part")
	// The 95th percentile of the last 64 windows like this one, in seconds. (double)
	BaselineP95Key = attribute.Key("stallspan.baseline.p95")
	// Share of the window with an operation in flight, on the disk with the highest share. At most its queue depth. (double)
	DiskBusyRatioKey = attribute.Key("stallspan.disk.busy.ratio")
	// The disks under the work, as in system.device.name. None of them is on another one. (string[])
	DiskNamesKey = attribute.Key("stallspan.disk.names")
	// Mean time of a read, over all the disks, in seconds. (double)
	DiskReadAwaitKey = attribute.Key("stallspan.disk.read.await")
	// Bytes read by any program, summed over the disks. (int)
	DiskReadBytesKey = attribute.Key("stallspan.disk.read.bytes")
	// Completed reads, summed over the disks. (int)
	DiskReadOperationsKey = attribute.Key("stallspan.disk.read.operations")
	// Mean time of a write, over all the disks, in seconds. (double)
	DiskWriteAwaitKey = attribute.Key("stallspan.disk.write.await")
	// Bytes written by any program, summed over the disks. (int)
	DiskWriteBytesKey = attribute.Key("stallspan.disk.write.bytes")
	// Completed writes, summed over the disks. (int)
	DiskWriteOperationsKey = attribute.Key("stallspan.disk.write.operations")
	// When the condition began, RFC 3339 in UTC. The record's time is the end. (string)
	EventBeganKey = attribute.Key("stallspan.event.began")
	// How often it happened since the event before. (int)
	EventCountKey = attribute.Key("stallspan.event.count")
	// The limit of stallspan.event.value, in the same unit. (double)
	EventLimitKey = attribute.Key("stallspan.event.limit")
	// The user or container of another program that measured it and reported it: stallspan run. (string)
	EventReporterKey = attribute.Key("stallspan.event.reporter")
	// True on the record of an end, absent on others. (boolean)
	EventResolvedKey = attribute.Key("stallspan.event.resolved")
	// True on a test event. (boolean)
	EventTestKey = attribute.Key("stallspan.event.test")
	// The measured value: degrees Celsius, the share of the last 30 s with reduced clocks, or the mean queue depth of the last minute. (double)
	EventValueKey = attribute.Key("stallspan.event.value")
	// The verdict with its evidence, in one sentence. (string)
	FindingKey = attribute.Key("stallspan.finding")
	// Share of the window in which the GPUs worked, as their mean. (double)
	GPUBusyRatioKey = attribute.Key("stallspan.gpu.busy.ratio")
	// Which clock of the GPU. (string, one of the values below)
	GPUClockDomainKey = attribute.Key("stallspan.gpu.clock.domain")
	// What reduced the clocks. (string, one of the values below)
	GPUClockThrottleReasonKey = attribute.Key("stallspan.gpu.clock.throttle.reason")
	// The GPUs of the window, as in hw.id. (string[])
	GPUIDsKey = attribute.Key("stallspan.gpu.ids")
	// What the time of the GPU went to. (string, one of the values below)
	GPUTimeCauseKey = attribute.Key("stallspan.gpu.time.cause")
	// How many windows read from the disk at once, slow or not. (int)
	IOStormWindowsKey = attribute.Key("stallspan.io.storm.windows")
	// A short name of the job: the pod, the Slurm job, the unit or the program. (string)
	JobNameKey = attribute.Key("stallspan.job.name")
	// What the job waited for. (string, one of the values below)
	JobStallCauseKey = attribute.Key("stallspan.job.stall.cause")
	// A part of a load. Parts may overlap. (string, one of the values below)
	LoadPhaseKey = attribute.Key("stallspan.load.phase")
	// Bytes that a phase of a load moved. (int)
	LoadSizeKey = attribute.Key("stallspan.load.size")
	// The model that was loaded. (string)
	ModelNameKey = attribute.Key("stallspan.model.name")
	// Bytes of the file or folder that the load read. (int)
	ModelSizeKey = attribute.Key("stallspan.model.size")
	// Class of the operation. (string, one of the values below)
	MountOperationClassKey = attribute.Key("stallspan.mount.operation.class")
	// Network and FUSE mounts on which the process had files open. No disk counter covers them. (string[])
	MountPointsKey = attribute.Key("stallspan.mount.points")
	// What is mounted, such as the server and its export. (string)
	MountSourceKey = attribute.Key("stallspan.mount.source")
	// The NVML field. (string)
	NVMLFieldKey = attribute.Key("stallspan.nvml.field")
	// The NVML function. (string)
	NVMLFunctionKey = attribute.Key("stallspan.nvml.function")
	// Share of the load's file or folder that came from memory. (double)
	PageCacheHitRatioKey = attribute.Key("stallspan.page_cache.hit.ratio")
	// I/O pressure (PSI, full): seconds in which all non-idle tasks waited, in the job's cgroup or else on the host. A part of some. (double)
	PressureIOFullTimeKey = attribute.Key("stallspan.pressure.io.full.time")
	// I/O pressure (PSI, some): seconds in which at least one task waited, in the job's cgroup or else on the host. Weighted by CPUs, so no wall-clock time. (double)
	PressureIOSomeTimeKey = attribute.Key("stallspan.pressure.io.some.time")
	// Seconds in which the process ran on a CPU, or was ready to and had none. (double)
	ProcessOnCPUTimeKey = attribute.Key("stallspan.process.on_cpu.time")
	// What to try first, in one sentence. (string)
	RemedyKey = attribute.Key("stallspan.remedy")
	// Whether the window exceeded a limit, its baseline, or half of its time in storage stall. (boolean)
	SlowKey = attribute.Key("stallspan.slow")
	// The first rule by which the window is slow. (string, one of the values below)
	SlownessReasonKey = attribute.Key("stallspan.slowness.reason")
	// About how many times faster the window would be without waiting for storage, or for the network if it is network_bound. (double)
	SpeedupEstimateKey = attribute.Key("stallspan.speedup.estimate")
	// Part of CPU stall, or of the time on a CPU: seconds in which the work was ready and had no CPU. (double)
	StallCPUReadyTimeKey = attribute.Key("stallspan.stall.cpu.ready.time")
	// CPU stall: seconds while the input pipeline used or waited for a CPU. (double)
	StallCPUTimeKey = attribute.Key("stallspan.stall.cpu.time")
	// Part of other: seconds while the job waited for data from peers that serve data. (double)
	StallNetworkTimeKey = attribute.Key("stallspan.stall.network.time")
	// What the job waited for in the time that is other, and its share of the window; at most three. (string[])
	StallOtherReasonsKey = attribute.Key("stallspan.stall.other.reasons")
	// Other: seconds for any other reason. (double)
	StallOtherTimeKey = attribute.Key("stallspan.stall.other.time")
	// Storage stall: seconds while the job waited for storage. (double)
	StallStorageTimeKey = attribute.Key("stallspan.stall.storage.time")
	// Service or scope of the user's own systemd, which the user names. (string)
	SystemdUserUnitKey = attribute.Key("stallspan.systemd.user.unit")
	// Number of the epoch, as the program counts. (int)
	TrainingEpochIndexKey = attribute.Key("stallspan.training.epoch.index")
	// Name of the run. (string)
	TrainingRunNameKey = attribute.Key("stallspan.training.run.name")
	// How certain it is that the period is that of the steps, 0 to 1. (double)
	TrainingStepConfidenceKey = attribute.Key("stallspan.training.step.confidence")
	// How many steps were found in the epoch. (int)
	TrainingStepCountKey = attribute.Key("stallspan.training.step.count")
	// Median time of a step in seconds. (double)
	TrainingStepPeriodKey = attribute.Key("stallspan.training.step.period")
	// Half the width of the ledger's least certain part, as a share of the window. (double)
	UncertaintyRatioKey = attribute.Key("stallspan.uncertainty.ratio")
	// The page of the machine at the time of the window. (string)
	URLKey = attribute.Key("stallspan.url")
	// The label drawn from the ledger. (string, one of the values below)
	VerdictKey = attribute.Key("stallspan.verdict")
	// How certain it is that a detected window is of its kind, 0 to 1. (double)
	WindowConfidenceKey = attribute.Key("stallspan.window.confidence")
	// Mean number of operations in flight, summed over the disks. (double)
	WindowDiskQueueDepthKey = attribute.Key("stallspan.window.disk.queue.depth")
	// What the ledger was made from. (string, one of the values below)
	WindowEvidenceKey = attribute.Key("stallspan.window.evidence")
	// Seconds in which the GPUs worked, summed over them. (double)
	WindowGPUBusyTimeKey = attribute.Key("stallspan.window.gpu.busy.time")
	// True if the figures cover only a part of the window. (boolean)
	WindowInterruptedKey = attribute.Key("stallspan.window.interrupted")
	// The kind of work. (string, one of the values below)
	WindowKindKey = attribute.Key("stallspan.window.kind")
	// Label under which the window was announced. (string)
	WindowNameKey = attribute.Key("stallspan.window.name")
	// The processes that the ledger accounts for. Disk figures are the machine's. (string, one of the values below)
	WindowScopeKey = attribute.Key("stallspan.window.scope")
	// How the window became known. (string, one of the values below)
	WindowSourceKey = attribute.Key("stallspan.window.source")
	// True if the window was cut: the program was killed, failed, or exited first. (boolean)
	WindowUnfinishedKey = attribute.Key("stallspan.window.unfinished")
	// Name of the block device as in /dev. (string)
	SystemDeviceNameKey = attribute.Key("system.device.name")
	// Where the file system is mounted. (string)
	SystemFilesystemMountpointKey = attribute.Key("system.filesystem.mountpoint")
	// Type of the file system, as in /proc/mounts. (string)
	SystemFilesystemTypeKey = attribute.Key("system.filesystem.type")
	// How many tasks waited. full is part of some: do not add them. (string, one of the values below)
	SystemLinuxPressureStallTypeKey = attribute.Key("system.linux.pressure.stall_type")
	// Service or scope of systemd. (string)
	SystemdUnitNameKey = attribute.Key("systemd.unit.name")
)

// The values of attributes.
var (

	// Values of cpu.mode.

	// In user mode, guests of a virtual machine included.
	CPUModeUser = CPUModeKey.String("user")
	// In user mode at a lowered priority.
	CPUModeNice = CPUModeKey.String("nice")
	// In the kernel.
	CPUModeSystem = CPUModeKey.String("system")
	// With nothing to run.
	CPUModeIdle = CPUModeKey.String("idle")
	// Idle while a task of this CPU waited for a block device.
	CPUModeIOWait = CPUModeKey.String("iowait")
	// Serving hard and soft interrupts.
	CPUModeInterrupt = CPUModeKey.String("interrupt")
	// Kept from running by the hypervisor.
	CPUModeSteal = CPUModeKey.String("steal")

	// Values of disk.io.direction.

	// From the device.
	DiskIODirectionRead = DiskIODirectionKey.String("read")
	// To the device.
	DiskIODirectionWrite = DiskIODirectionKey.String("write")

	// Values of error.type.

	// Memory errors that ECC corrected.
	ErrorTypeCorrected = ErrorTypeKey.String("corrected")
	// Memory errors that ECC could not correct.
	ErrorTypeUncorrected = ErrorTypeKey.String("uncorrected")
	// Packets repeated over PCIe.
	ErrorTypePCIeReplay = ErrorTypeKey.String("pcie_replay")
	// Memory rows replaced by spare ones.
	ErrorTypeRowRemap = ErrorTypeKey.String("row_remap")
	// Memory pages taken out of use.
	ErrorTypeRetiredPage = ErrorTypeKey.String("retired_page")
	// XID errors beyond the first 64 codes.
	ErrorTypeXidOther = ErrorTypeKey.String("xid_other")
	// NVMe data that could not be read back as written.
	ErrorTypeMedia = ErrorTypeKey.String("media")
	// Checksum errors on the link of a drive, mostly caused by its cable.
	ErrorTypeCRC = ErrorTypeKey.String("crc")
	// Drive sectors replaced by spare ones; SCSI: grown defects.
	ErrorTypeReallocatedSector = ErrorTypeKey.String("reallocated_sector")
	// Drive sectors that cannot be read and wait to be replaced.
	ErrorTypePendingSector = ErrorTypeKey.String("pending_sector")
	// Drive errors reported as uncorrectable.
	ErrorTypeUncorrectable = ErrorTypeKey.String("uncorrectable")

	// Values of hw.gpu.task.

	// Kernels of any kind.
	HwGPUTaskGeneral = HwGPUTaskKey.String("general")
	// Video encoding.
	HwGPUTaskEncoder = HwGPUTaskKey.String("encoder")
	// Video decoding.
	HwGPUTaskDecoder = HwGPUTaskKey.String("decoder")

	// Values of hw.limit_type.

	// The maximum of the GPU and its slot.
	HwLimitTypeMax = HwLimitTypeKey.String("max")
	// Above it a GPU slows down, and a drive reports heat.
	HwLimitTypeHighDegraded = HwLimitTypeKey.String("high.degraded")
	// Above it a GPU switches off.
	HwLimitTypeHighCritical = HwLimitTypeKey.String("high.critical")

	// Values of hw.physical_disk.state.

	// What is left.
	HwPhysicalDiskStateRemaining = HwPhysicalDiskStateKey.String("remaining")

	// Values of hw.state.

	// It can be read and reports no fault.
	HwStateOK = HwStateKey.String("ok")
	// GPU: its driver does not answer, or it needs a reset. Drive: heat, wear, or bad sectors that do not grow.
	HwStateDegraded = HwStateKey.String("degraded")
	// GPU: lost or no longer listed. Drive: reports a failure, does not answer, or vanished.
	HwStateFailed = HwStateKey.String("failed")
	// GPU: a memory row could not be replaced. Drive: error counts grow; copy its data.
	HwStatePredictedFailure = HwStateKey.String("predicted_failure")

	// Values of hw.type.

	// A GPU.
	HwTypeGPU = HwTypeKey.String("gpu")
	// A drive.
	HwTypePhysicalDisk = HwTypeKey.String("physical_disk")

	// Values of network.io.direction.

	// To the GPU or job.
	NetworkIODirectionReceive = NetworkIODirectionKey.String("receive")
	// From the GPU or job.
	NetworkIODirectionTransmit = NetworkIODirectionKey.String("transmit")

	// Values of stallspan.gpu.clock.domain.

	// The multiprocessors.
	GPUClockDomainSM = GPUClockDomainKey.String("sm")
	// The memory.
	GPUClockDomainMemory = GPUClockDomainKey.String("memory")
	// The chip's part for graphics.
	GPUClockDomainGraphics = GPUClockDomainKey.String("graphics")
	// The video encoder and decoder.
	GPUClockDomainVideo = GPUClockDomainKey.String("video")

	// Values of stallspan.gpu.clock.throttle.reason.

	// The power cap.
	GPUClockThrottleReasonPower = GPUClockThrottleReasonKey.String("power")
	// The driver's thermal limit.
	GPUClockThrottleReasonThermal = GPUClockThrottleReasonKey.String("thermal")
	// The chip's thermal protection.
	GPUClockThrottleReasonHwThermal = GPUClockThrottleReasonKey.String("hw_thermal")
	// A signal of the machine's power supply.
	GPUClockThrottleReasonPowerBrake = GPUClockThrottleReasonKey.String("power_brake")
	// Another GPU of its group.
	GPUClockThrottleReasonSyncBoost = GPUClockThrottleReasonKey.String("sync_boost")
	// A limit of the board.
	GPUClockThrottleReasonBoard = GPUClockThrottleReasonKey.String("board")
	// The voltage limit.
	GPUClockThrottleReasonReliability = GPUClockThrottleReasonKey.String("reliability")

	// Values of stallspan.gpu.time.cause.

	// The GPU worked.
	GPUTimeCauseBusy = GPUTimeCauseKey.String("busy")
	// The GPU was idle while the job waited for storage.
	GPUTimeCauseStorage = GPUTimeCauseKey.String("storage")
	// The GPU was idle while the input pipeline used or waited for a CPU.
	GPUTimeCauseCPU = GPUTimeCauseKey.String("cpu")
	// The GPU was idle for another reason, or held by a process that is not followed.
	GPUTimeCauseOther = GPUTimeCauseKey.String("other")
	// No process held memory of the GPU.
	GPUTimeCauseIdle = GPUTimeCauseKey.String("idle")

	// Values of stallspan.job.stall.cause.

	// The job waited for storage.
	JobStallCauseStorage = JobStallCauseKey.String("storage")
	// The job waited for something else.
	JobStallCauseOther = JobStallCauseKey.String("other")

	// Values of stallspan.load.phase.

	// The job wrote the files that it then read.
	LoadPhaseDownload = LoadPhaseKey.String("download")
	// The files came into memory.
	LoadPhaseRead = LoadPhaseKey.String("read")
	// The memory in use on the GPUs grew.
	LoadPhaseHostToDevice = LoadPhaseKey.String("host_to_device")
	// The job wrote compiled kernels.
	LoadPhaseCompile = LoadPhaseKey.String("compile")
	// The GPU worked before the server listened.
	LoadPhaseWarmUp = LoadPhaseKey.String("warm_up")

	// Values of stallspan.mount.operation.class.

	// Reads of data.
	MountOperationClassRead = MountOperationClassKey.String("read")
	// Writes of data.
	MountOperationClassWrite = MountOperationClassKey.String("write")
	// Metadata, locks and sessions.
	MountOperationClassOther = MountOperationClassKey.String("other")

	// Values of stallspan.slowness.reason.

	// It took longer than its baseline.
	SlownessReasonBaseline = SlownessReasonKey.String("baseline")
	// It took longer than the configured limit.
	SlownessReasonThreshold = SlownessReasonKey.String("threshold")
	// It waited for storage for more than half of its time.
	SlownessReasonStorageStall = SlownessReasonKey.String("storage_stall")

	// Values of stallspan.verdict.

	// The GPU was busy nearly all the time.
	VerdictGPUBound = VerdictKey.String("gpu_bound")
	// The job waited for storage.
	VerdictStorageBound = VerdictKey.String("storage_bound")
	// The job waited for data from the network.
	VerdictNetworkBound = VerdictKey.String("network_bound")
	// The input pipeline was the limit.
	VerdictCPUBound = VerdictKey.String("cpu_bound")
	// The job waited for something else that is known, such as a lock, a timer or a child process.
	VerdictWaitBound = VerdictKey.String("wait_bound")
	// Two of these were limits: storage, the network and CPU.
	VerdictMixed = VerdictKey.String("mixed")
	// No evidence explains it, or evidence is missing.
	VerdictUnknown = VerdictKey.String("unknown")

	// Values of stallspan.window.evidence.

	// Every change of state of the job's threads.
	WindowEvidenceSchedule = WindowEvidenceKey.String("schedule")
	// Pressure stall information where the kernel has it, disk queues and CPU times.
	WindowEvidencePressure = WindowEvidenceKey.String("pressure")
	// What the job's threads were in at random moments.
	WindowEvidenceSampled = WindowEvidenceKey.String("sampled")

	// Values of stallspan.window.kind.

	// A model came from storage into memory.
	WindowKindModelLoad = WindowKindKey.String("model_load")
	// One pass over the training data.
	WindowKindEpoch = WindowKindKey.String("epoch")
	// The state of a training went to storage.
	WindowKindCheckpoint = WindowKindKey.String("checkpoint")
	// Some steps of a training's loop.
	WindowKindSteps = WindowKindKey.String("steps")
	// Anything else that a program names.
	WindowKindCustom = WindowKindKey.String("custom")

	// Values of stallspan.window.scope.

	// All processes, because no process was named, found or followed.
	WindowScopeHost = WindowScopeKey.String("host")
	// A process and its children.
	WindowScopeProcess = WindowScopeKey.String("process")
	// The processes of a container.
	WindowScopeContainer = WindowScopeKey.String("container")

	// Values of stallspan.window.source.

	// The program, its output or a caller reported both ends as they happened.
	WindowSourceAnnounced = WindowSourceKey.String("announced")
	// A span that arrived afterwards.
	WindowSourceSpan = WindowSourceKey.String("span")
	// It was found from the outside, by what the job did.
	WindowSourceDetected = WindowSourceKey.String("detected")

	// Values of system.linux.pressure.stall_type.

	// At least one task waited.
	SystemLinuxPressureStallTypeSome = SystemLinuxPressureStallTypeKey.String("some")
	// Every task that was not idle waited.
	SystemLinuxPressureStallTypeFull = SystemLinuxPressureStallTypeKey.String("full")
)

// The metrics.
var (
	HwEnergy = Metric{
		Name: "hw.energy", Unit: "J", Kind: Counter,
		Description: "Energy used since the driver was loaded.",
	}
	HwErrors = Metric{
		Name: "hw.errors", Unit: "{error}", Kind: Counter, Int: true,
		Description: "Errors of the GPU or drive, by kind.",
	}
	HwFanSpeedRatio = Metric{
		Name: "hw.fan.speed_ratio", Unit: "1", Kind: Gauge,
		Description: "Fan speed as a share of full speed, as the driver sets it.",
	}
	HwGPUIO = Metric{
		Name: "hw.gpu.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes received and sent over PCIe.",
	}
	HwGPUMemoryLimit = Metric{
		Name: "hw.gpu.memory.limit", Unit: "By", Kind: UpDownCounter, Int: true,
		Description: "Memory of the GPU.",
	}
	HwGPUMemoryUsage = Metric{
		Name: "hw.gpu.memory.usage", Unit: "By", Kind: UpDownCounter, Int: true,
		Description: "Memory in use, without stallspan.gpu.memory.reserved. Drivers before 510 include that.",
	}
	HwGPUMemoryUtilization = Metric{
		Name: "hw.gpu.memory.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of the memory in use.",
	}
	HwGPUUtilization = Metric{
		Name: "hw.gpu.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of time in which the GPU worked on the task.",
	}
	HwPhysicalDiskEnduranceUtilization = Metric{
		Name: "hw.physical_disk.endurance_utilization", Unit: "1", Kind: Gauge,
		Description: "Share of the rated writes that is left, at least 0.",
	}
	HwPhysicalDiskSize = Metric{
		Name: "hw.physical_disk.size", Unit: "By", Kind: UpDownCounter, Int: true,
		Description: "Size of the drive.",
	}
	HwPhysicalDiskSmart = Metric{
		Name: "hw.physical_disk.smart", Unit: "1", Kind: Gauge, Int: true,
		Description: "Raw value of a health attribute. Counts cover the drive's life; shares are per cent. The time is that of the reading.",
	}
	HwPower = Metric{
		Name: "hw.power", Unit: "W", Kind: Gauge,
		Description: "Power draw: the mean of about the last second if the GPU counts energy, else the driver's average.",
	}
	HwStatus = Metric{
		Name: "hw.status", Unit: "1", Kind: UpDownCounter, Int: true,
		Description: "1 for the state of the GPU or drive, 0 for the others.",
	}
	HwTemperature = Metric{
		Name: "hw.temperature", Unit: "Cel", Kind: Gauge,
		Description: "Temperature of the GPU's chip or memory, or of a drive.",
	}
	HwTemperatureLimit = Metric{
		Name: "hw.temperature.limit", Unit: "Cel", Kind: Gauge,
		Description: "Temperature at which the GPU slows down or switches off, or above which a drive reports heat.",
	}
	ProcessDiskIO = Metric{
		Name: "process.disk.io", Unit: "By", Kind: Counter, Int: true, OptIn: true,
		Description: "Bytes read from or written to storage, without reads from the page cache.",
	}
	ProcessNetworkIO = Metric{
		Name: "process.network.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes of data that the job's processes received or sent over TCP, since the job was followed.",
	}
	DiskAwait = Metric{
		Name: "stallspan.disk.await", Unit: "s", Kind: Gauge,
		Description: "Mean time of the operations that completed since the previous collection. Absent without one, and where the kernel does not count it.",
	}
	DiskDiscardIO = Metric{
		Name: "stallspan.disk.discard.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes discarded (trimmed). Linux 4.18 and later.",
	}
	DiskDiscardOperations = Metric{
		Name: "stallspan.disk.discard.operations", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Completed discards. Linux 4.18 and later.",
	}
	DiskDiscardTime = Metric{
		Name: "stallspan.disk.discard.time", Unit: "s", Kind: Counter,
		Description: "Time of discards, summed over operations. Linux 4.18 and later.",
	}
	DiskFlushOperations = Metric{
		Name: "stallspan.disk.flush.operations", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Completed cache flushes, of whole devices. Linux 5.5 and later.",
	}
	DiskFlushTime = Metric{
		Name: "stallspan.disk.flush.time", Unit: "s", Kind: Counter,
		Description: "Time of cache flushes, summed over operations. Linux 5.5 and later.",
	}
	DiskOperationDuration = Metric{
		Name: "stallspan.disk.operation.duration", Unit: "s", Kind: Histogram,
		Description: "How long operations took from submission to completion, the time in the queue included, as await.",
	}
	DiskQueueDepth = Metric{
		Name: "stallspan.disk.queue.depth", Unit: "{operation}", Kind: Gauge,
		Description: "Mean number of operations in flight since the previous collection.",
	}
	DiskThroughputCeiling = Metric{
		Name: "stallspan.disk.throughput.ceiling", Unit: "By/s", Kind: Gauge,
		Description: "Highest throughput seen over about a second, or measured by stallspan bench.",
	}
	DiskUtilization = Metric{
		Name: "stallspan.disk.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of time with an operation in flight since the previous collection, as %util of iostat, but at most the queue depth.",
	}
	ExportDropped = Metric{
		Name: "stallspan.export.dropped", Unit: "{item}", Kind: Counter, Int: true,
		Description: "Spans and log records that were lost: a queue was full, or the backend refused them.",
	}
	GPUAllocatedTime = Metric{
		Name: "stallspan.gpu.allocated.time", Unit: "s", Kind: Counter,
		Description: "Time in which the job held memory of the GPU.",
	}
	GPUBusyTime = Metric{
		Name: "stallspan.gpu.busy.time", Unit: "s", Kind: Counter,
		Description: "Time in which at least one kernel ran, since Stallspan started. An integral, so no burst is missed.",
	}
	GPUClockFrequency = Metric{
		Name: "stallspan.gpu.clock.frequency", Unit: "Hz", Kind: Gauge,
		Description: "Frequency of the clock at the reading.",
	}
	GPUClockThrottleTime = Metric{
		Name: "stallspan.gpu.clock.throttle.time", Unit: "s", Kind: Counter,
		Description: "Time with reduced clocks, by reason.",
	}
	GPUDRAMUtilization = Metric{
		Name: "stallspan.gpu.dram.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of the memory bandwidth in use, over about the last second. Hopper and later.",
	}
	GPUMemoryControllerUtilization = Metric{
		Name: "stallspan.gpu.memory.controller.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of time in which memory was read or written, over the driver's period of at most a second. No measure of bandwidth.",
	}
	GPUMemoryReserved = Metric{
		Name: "stallspan.gpu.memory.reserved", Unit: "By", Kind: UpDownCounter, Int: true,
		Description: "Memory that the driver reserves for itself.",
	}
	GPUNVLinkIO = Metric{
		Name: "stallspan.gpu.nvlink.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Payload bytes received and sent over all NVLinks.",
	}
	GPUPCIeLinkGeneration = Metric{
		Name: "stallspan.gpu.pcie.link.generation", Unit: "1", Kind: Gauge, Int: true,
		Description: "PCIe generation of the link; it falls on an idle GPU.",
	}
	GPUPCIeLinkWidth = Metric{
		Name: "stallspan.gpu.pcie.link.width", Unit: "{lane}", Kind: Gauge, Int: true,
		Description: "PCIe lanes of the link.",
	}
	GPUPCIeThroughput = Metric{
		Name: "stallspan.gpu.pcie.throughput", Unit: "By/s", Kind: Gauge,
		Description: "Bytes a second over PCIe, if the GPU does not count them. Over a short period before the reading.",
	}
	GPUPowerLimit = Metric{
		Name: "stallspan.gpu.power.limit", Unit: "W", Kind: Gauge,
		Description: "The power cap in force.",
	}
	GPUSMOccupancy = Metric{
		Name: "stallspan.gpu.sm.occupancy", Unit: "1", Kind: Gauge,
		Description: "Resident warps as a share of the maximum, over about the last second. Hopper and later.",
	}
	GPUSMUtilization = Metric{
		Name: "stallspan.gpu.sm.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of time in which SMs had work, averaged over them and about the last second. Hopper and later.",
	}
	GPUTensorUtilization = Metric{
		Name: "stallspan.gpu.tensor.utilization", Unit: "1", Kind: Gauge,
		Description: "Share of time in which tensor cores worked, over about the last second. Hopper and later.",
	}
	GPUTime = Metric{
		Name: "stallspan.gpu.time", Unit: "s", Kind: Counter,
		Description: "Time of the GPU, by the job that held it and by cause.",
	}
	GPUDirectErrors = Metric{
		Name: "stallspan.gpudirect.errors", Unit: "{error}", Kind: Counter, Int: true,
		Description: "Failed transfers of GPUDirect Storage.",
	}
	GPUDirectIO = Metric{
		Name: "stallspan.gpudirect.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes that GPUDirect Storage moved between storage and GPUs, without the page cache.",
	}
	GPUDirectOperations = Metric{
		Name: "stallspan.gpudirect.operations", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Completed transfers of GPUDirect Storage.",
	}
	JobStallTime = Metric{
		Name: "stallspan.job.stall.time", Unit: "s", Kind: Counter,
		Description: "Time in which a job without a GPU waited.",
	}
	KernelPartRefused = Metric{
		Name: "stallspan.kernel.part.refused", Unit: "{part}", Kind: Gauge, Int: true,
		Description: "Parts of the evidence that the kernel or a policy refuses now; `/v1/status` and the log name them.",
	}
	ModelLoadDuration = Metric{
		Name: "stallspan.model.load.duration", Unit: "s", Kind: Histogram,
		Description: "Duration of model loads.",
	}
	MountConnectionCount = Metric{
		Name: "stallspan.mount.connection.count", Unit: "{connection}", Kind: UpDownCounter, Int: true,
		Description: "Transports to the server of an NFS mount, as nconnect sets them.",
	}
	MountIO = Metric{
		Name: "stallspan.mount.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes that came from the server (read) or went to it (write).",
	}
	MountOperationTime = Metric{
		Name: "stallspan.mount.operation.time", Unit: "s", Kind: Counter,
		Description: "Time of operations, summed, from the request to the end of its processing.",
	}
	MountOperations = Metric{
		Name: "stallspan.mount.operations", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Completed operations: of NFS and Ceph, requests to the server; of Lustre, calls of programs.",
	}
	MountQueueTime = Metric{
		Name: "stallspan.mount.queue.time", Unit: "s", Kind: Counter,
		Description: "Time for which requests of an NFS mount waited to be sent, summed.",
	}
	MountRequestWaiting = Metric{
		Name: "stallspan.mount.request.waiting", Unit: "{request}", Kind: UpDownCounter, Int: true,
		Description: "Requests without an answer from the FUSE server, at the reading.",
	}
	MountRetransmissions = Metric{
		Name: "stallspan.mount.retransmissions", Unit: "{request}", Kind: Counter, Int: true,
		Description: "Requests of an NFS mount that were sent again.",
	}
	MountRoundTripTime = Metric{
		Name: "stallspan.mount.round_trip.time", Unit: "s", Kind: Counter,
		Description: "Time from sending a request of an NFS mount to its answer, summed.",
	}
	MountTimeouts = Metric{
		Name: "stallspan.mount.timeouts", Unit: "{request}", Kind: Counter, Int: true,
		Description: "Requests of an NFS mount without an answer after all retransmissions of one timeout.",
	}
	MountWaitingTime = Metric{
		Name: "stallspan.mount.waiting.time", Unit: "s", Kind: Counter,
		Description: "Requests without an answer from the FUSE server, integrated over time since Stallspan first saw the mount.",
	}
	NVMLCallDuration = Metric{
		Name: "stallspan.nvml.call.duration", Unit: "s", Kind: Histogram,
		Description: "Duration of calls of the function, with count, sum and the longest; it has one bucket.",
	}
	NVMLFieldTime = Metric{
		Name: "stallspan.nvml.field.time", Unit: "s", Kind: Counter,
		Description: "Time for a field, as the driver reports it. A part of nvmlDeviceGetFieldValues.",
	}
	NVMLSessions = Metric{
		Name: "stallspan.nvml.sessions", Unit: "{session}", Kind: Counter, Int: true,
		Description: "Sessions with the driver. More than one means that the driver went away or was replaced.",
	}
	NVMLValueDropped = Metric{
		Name: "stallspan.nvml.value.dropped", Unit: "{value}", Kind: Counter, Int: true,
		Description: "Values outside their physical range, which were dropped.",
	}
	Panics = Metric{
		Name: "stallspan.panics", Unit: "{panic}", Kind: Counter, Int: true,
		Description: "Bugs of Stallspan that ended a part of it, which started again: please report them.",
	}
	PhysicalDiskIO = Metric{
		Name: "stallspan.physical_disk.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes read and written in the drive's life, by its own count.",
	}
	PhysicalDiskPowerOnTime = Metric{
		Name: "stallspan.physical_disk.power_on.time", Unit: "s", Kind: Counter,
		Description: "Time switched on in the drive's life. Most drives count whole hours.",
	}
	ProcessGPUMemoryUsage = Metric{
		Name: "stallspan.process.gpu.memory.usage", Unit: "By", Kind: UpDownCounter, Int: true,
		Description: "GPU memory of a process.",
	}
	ReadingLate = Metric{
		Name: "stallspan.reading.late", Unit: "{reading}", Kind: Counter, Int: true,
		Description: "Readings that were late by more than an interval, because the machine was busy.",
	}
	TrainingEpochDuration = Metric{
		Name: "stallspan.training.epoch.duration", Unit: "s", Kind: Histogram,
		Description: "Duration of training epochs.",
	}
	SystemCPUTime = Metric{
		Name: "system.cpu.time", Unit: "s", Kind: Counter,
		Description: "Time of the logical CPU in each mode.",
	}
	SystemCPUUtilization = Metric{
		Name: "system.cpu.utilization", Unit: "1", Kind: Gauge, OptIn: true,
		Description: "Share of time of the logical CPU in each mode since the previous collection.",
	}
	SystemDiskIO = Metric{
		Name: "system.disk.io", Unit: "By", Kind: Counter, Int: true,
		Description: "Bytes transferred.",
	}
	SystemDiskIOTime = Metric{
		Name: "system.disk.io_time", Unit: "s", Kind: Counter,
		Description: "Time with at least one operation in flight.",
	}
	SystemDiskMerged = Metric{
		Name: "system.disk.merged", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Requests merged into another before they reached the device.",
	}
	SystemDiskOperationTime = Metric{
		Name: "system.disk.operation_time", Unit: "s", Kind: Counter,
		Description: "Time of operations, summed. Grows faster than the clock if they run in parallel.",
	}
	SystemDiskOperations = Metric{
		Name: "system.disk.operations", Unit: "{operation}", Kind: Counter, Int: true,
		Description: "Completed operations.",
	}
	SystemDiskPendingOperations = Metric{
		Name: "system.disk.pending_operations", Unit: "{operation}", Kind: UpDownCounter, Int: true,
		Description: "Operations in flight at the reading.",
	}
	SystemDiskWeightedIOTime = Metric{
		Name: "system.disk.weighted_io_time", Unit: "s", Kind: Counter,
		Description: "Operations in flight, integrated over time. Its rate is the queue depth.",
	}
	SystemLinuxPressureCPUStallTime = Metric{
		Name: "system.linux.pressure.cpu.stall.time", Unit: "s", Kind: Counter,
		Description: "Time in which runnable tasks waited for a CPU (PSI). Weighted by CPUs, so no wall-clock time. The host has no full.",
	}
	SystemLinuxPressureIOStallTime = Metric{
		Name: "system.linux.pressure.io.stall.time", Unit: "s", Kind: Counter,
		Description: "Time in which tasks waited for block devices and network file systems (PSI). Weighted by CPUs, so no wall-clock time.",
	}
	SystemLinuxPressureMemoryStallTime = Metric{
		Name: "system.linux.pressure.memory.stall.time", Unit: "s", Kind: Counter,
		Description: "Time in which tasks waited for memory: reclaim, swap-in, page cache thrashing (PSI). Weighted by CPUs, so no wall-clock time.",
	}
)

// AgentDegradedEvent: A part of Stallspan has failed for a minute.
var AgentDegradedEvent = Event{
	Name: "stallspan.agent.degraded",
	Attributes: []AttributeRef{
		{"stallspan.agent.part", attribute.STRING, true}, {"stallspan.event.began", attribute.STRING, false},
		{"stallspan.event.resolved", attribute.BOOL, false}, {"stallspan.event.test", attribute.BOOL, false},
	},
}

// DiskHealthEvent: A drive is failing, by its own assessment or its counters, or has vanished.
var DiskHealthEvent = Event{
	Name: "stallspan.disk.health",
	Attributes: []AttributeRef{
		{"hw.id", attribute.STRING, true}, {"hw.model", attribute.STRING, false}, {"hw.state", attribute.STRING, true},
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.resolved", attribute.BOOL, false},
		{"stallspan.event.test", attribute.BOOL, false}, {"system.device.name", attribute.STRING, true},
	},
}

// DiskSaturatedEvent: A disk has been saturated or stuck for a minute.
var DiskSaturatedEvent = Event{
	Name: "stallspan.disk.saturated",
	Attributes: []AttributeRef{
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.limit", attribute.FLOAT64, false},
		{"stallspan.event.resolved", attribute.BOOL, false}, {"stallspan.event.test", attribute.BOOL, false},
		{"stallspan.event.value", attribute.FLOAT64, false}, {"system.device.name", attribute.STRING, true},
	},
}

// GPUErrorEvent: The driver reported an XID error. It ends when that code did not occur for ten minutes; repetitions are counted.
var GPUErrorEvent = Event{
	Name: "stallspan.gpu.error",
	Attributes: []AttributeRef{
		{"error.type", attribute.STRING, true}, {"hw.driver_version", attribute.STRING, false},
		{"hw.id", attribute.STRING, true}, {"hw.name", attribute.STRING, false},
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.count", attribute.INT64, true},
		{"stallspan.event.resolved", attribute.BOOL, false}, {"stallspan.event.test", attribute.BOOL, false},
	},
}

// GPULostEvent: A GPU cannot be read.
var GPULostEvent = Event{
	Name: "stallspan.gpu.lost",
	Attributes: []AttributeRef{
		{"hw.driver_version", attribute.STRING, false}, {"hw.id", attribute.STRING, true},
		{"hw.name", attribute.STRING, false}, {"hw.state", attribute.STRING, true},
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.resolved", attribute.BOOL, false},
		{"stallspan.event.test", attribute.BOOL, false},
	},
}

// GPUReleasedEvent: On request, all files of the GPU's driver are closed for a time.
var GPUReleasedEvent = Event{
	Name: "stallspan.gpu.released",
	Attributes: []AttributeRef{
		{"hw.driver_version", attribute.STRING, false}, {"hw.id", attribute.STRING, true},
		{"hw.name", attribute.STRING, false}, {"stallspan.event.began", attribute.STRING, false},
		{"stallspan.event.resolved", attribute.BOOL, false}, {"stallspan.event.test", attribute.BOOL, false},
	},
}

// GPUTemperatureHighEvent: A GPU or its memory is close to its slowdown limit.
var GPUTemperatureHighEvent = Event{
	Name: "stallspan.gpu.temperature.high",
	Attributes: []AttributeRef{
		{"hw.driver_version", attribute.STRING, false}, {"hw.id", attribute.STRING, true},
		{"hw.name", attribute.STRING, false}, {"hw.sensor_location", attribute.STRING, true},
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.limit", attribute.FLOAT64, false},
		{"stallspan.event.resolved", attribute.BOOL, false}, {"stallspan.event.test", attribute.BOOL, false},
		{"stallspan.event.value", attribute.FLOAT64, false},
	},
}

// GPUThrottledEvent: Heat or the power supply reduced the clocks of a GPU. The power cap alone does not count.
var GPUThrottledEvent = Event{
	Name: "stallspan.gpu.throttled",
	Attributes: []AttributeRef{
		{"hw.driver_version", attribute.STRING, false}, {"hw.id", attribute.STRING, true},
		{"hw.name", attribute.STRING, false}, {"stallspan.event.began", attribute.STRING, false},
		{"stallspan.event.limit", attribute.FLOAT64, false}, {"stallspan.event.resolved", attribute.BOOL, false},
		{"stallspan.event.test", attribute.BOOL, false}, {"stallspan.event.value", attribute.FLOAT64, false},
		{"stallspan.gpu.clock.throttle.reason", attribute.STRING, false},
	},
}

// IOStormEvent: Several slow windows read from one disk at once. It ends when no more of them ended for a minute.
var IOStormEvent = Event{
	Name: "stallspan.io.storm",
	Attributes: []AttributeRef{
		{"stallspan.event.began", attribute.STRING, false}, {"stallspan.event.resolved", attribute.BOOL, false},
		{"stallspan.event.test", attribute.BOOL, false}, {"stallspan.io.storm.windows", attribute.INT64, true},
		{"system.device.name", attribute.STRING, true},
	},
}

// WindowSlowEvent: The window is slow. The time is when it exceeded its limit, or else that of its first storage stall, or else its beginning.
var WindowSlowEvent = Event{
	Name: "stallspan.window.slow",
	Attributes: []AttributeRef{
		{"stallspan.event.reporter", attribute.STRING, false}, {"stallspan.event.test", attribute.BOOL, false},
		{"stallspan.finding", attribute.STRING, false}, {"stallspan.job.name", attribute.STRING, false},
		{"stallspan.model.name", attribute.STRING, false}, {"stallspan.slowness.reason", attribute.STRING, true},
		{"stallspan.training.epoch.index", attribute.INT64, false},
		{"stallspan.training.run.name", attribute.STRING, false}, {"stallspan.verdict", attribute.STRING, false},
		{"stallspan.window.kind", attribute.STRING, true}, {"stallspan.window.name", attribute.STRING, false},
		{"stallspan.window.source", attribute.STRING, false},
	},
}

// Metrics lists every metric, by name.
var Metrics = []Metric{
	HwEnergy, HwErrors, HwFanSpeedRatio, HwGPUIO, HwGPUMemoryLimit, HwGPUMemoryUsage, HwGPUMemoryUtilization,
	HwGPUUtilization, HwPhysicalDiskEnduranceUtilization, HwPhysicalDiskSize, HwPhysicalDiskSmart, HwPower, HwStatus,
	HwTemperature, HwTemperatureLimit, ProcessDiskIO, ProcessNetworkIO, DiskAwait, DiskDiscardIO,
	DiskDiscardOperations, DiskDiscardTime, DiskFlushOperations, DiskFlushTime, DiskOperationDuration, DiskQueueDepth,
	DiskThroughputCeiling, DiskUtilization, ExportDropped, GPUAllocatedTime, GPUBusyTime, GPUClockFrequency,
	GPUClockThrottleTime, GPUDRAMUtilization, GPUMemoryControllerUtilization, GPUMemoryReserved, GPUNVLinkIO,
	GPUPCIeLinkGeneration, GPUPCIeLinkWidth, GPUPCIeThroughput, GPUPowerLimit, GPUSMOccupancy, GPUSMUtilization,
	GPUTensorUtilization, GPUTime, GPUDirectErrors, GPUDirectIO, GPUDirectOperations, JobStallTime, KernelPartRefused,
	ModelLoadDuration, MountConnectionCount, MountIO, MountOperationTime, MountOperations, MountQueueTime,
	MountRequestWaiting, MountRetransmissions, MountRoundTripTime, MountTimeouts, MountWaitingTime, NVMLCallDuration,
	NVMLFieldTime, NVMLSessions, NVMLValueDropped, Panics, PhysicalDiskIO, PhysicalDiskPowerOnTime,
	ProcessGPUMemoryUsage, ReadingLate, TrainingEpochDuration, SystemCPUTime, SystemCPUUtilization, SystemDiskIO,
	SystemDiskIOTime, SystemDiskMerged, SystemDiskOperationTime, SystemDiskOperations, SystemDiskPendingOperations,
	SystemDiskWeightedIOTime, SystemLinuxPressureCPUStallTime, SystemLinuxPressureIOStallTime,
	SystemLinuxPressureMemoryStallTime,
}

// Events lists every event, by name.
var Events = []Event{
	AgentDegradedEvent,
	DiskHealthEvent,
	DiskSaturatedEvent,
	GPUErrorEvent,
	GPULostEvent,
	GPUReleasedEvent,
	GPUTemperatureHighEvent,
	GPUThrottledEvent,
	IOStormEvent,
	WindowSlowEvent,
}
