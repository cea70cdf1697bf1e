// Code generated from registry/*.yaml by internal/gen; DO NOT EDIT.

package semconv

import "go.opentelemetry.io/otel/attribute"

// SchemaURL identifies this version of the names. Every instrumentation scope of ours carries it.
const SchemaURL = "https://stallspan.github.io/schemas/0.1.0"

// Attribute keys.
const (
	// Number of the logical CPU, as the kernel counts them from 0. (int)
	CPULogicalNumberKey = attribute.Key("cpu.logical_number")
	// What the CPU did in that time. (string, one of the values below)
	CPUModeKey = attribute.Key("cpu.mode")
	// Which way the data went. (string, one of the values below)
	DiskIODirectionKey = attribute.Key("disk.io.direction")
	// Which kind of error is counted. (string, one of the values below)
	ErrorTypeKey = attribute.Key("error.type")
	// The file that the load read, or the folder that holds its parts. (string)
	FilePathKey = attribute.Key("file.path")
	// The machine's own identifier, the same after a reboot. (string)
	HostIDKey = attribute.Key("host.id")
	// The machine's host name. (string)
	HostNameKey = attribute.Key("host.name")
	// The version of the accelerator's driver. (string)
	HwDriverVersionKey = attribute.Key("hw.driver_version")
	// The version of the drive's firmware. (string)
	HwFirmwareVersionKey = attribute.Key("hw.firmware_version")
	// Which of the accelerator's engines the value is about. (string, one of the values below)
	HwGPUTaskKey = attribute.Key("hw.gpu.task")
	// The identifier of the accelerator or drive, the same after a reboot and in every process. (string)
	HwIDKey = attribute.Key("hw.id")
	// Which limit the value is; absent on a value that is no limit. (string, one of the values below)
	HwLimitTypeKey = attribute.Key("hw.limit_type")
	// The model of the accelerator or drive. (string)
	HwModelKey = attribute.Key("hw.model")
	// What a person calls the accelerator or drive. (string)
	HwNameKey = attribute.Key("hw.name")
	// Of a slice of an accelerator (MIG), the identifier of the accelerator. (string)
	HwParentKey = attribute.Key("hw.parent")
	// What the drive tells of, by one name for all protocols. (string)
	HwPhysicalDiskSmartAttributeKey = attribute.Key("hw.physical_disk.smart_attribute")
	// Which part of the drive's endurance the value is. (string, one of the values below)
	HwPhysicalDiskStateKey = attribute.Key("hw.physical_disk.state")
	// HDD of a drive that spins, SSD of one that certainly does not. (string)
	HwPhysicalDiskTypeKey = attribute.Key("hw.physical_disk.type")
	// Where the temperature is taken, in the accelerator's chip or in its memory, or at which sensor of an NVMe drive; absent of what a drive tells of itself as a whole. (string)
	HwSensorLocationKey = attribute.Key("hw.sensor_location")
	// The drive's serial number. (string)
	HwSerialNumberKey = attribute.Key("hw.serial_number")
	// The state that the series is about. (string, one of the values below)
	HwStateKey = attribute.Key("hw.state")
	// What kind of hardware it is. (string, one of the values below)
	HwTypeKey = attribute.Key("hw.type")
	// Who made the accelerator. (string)
	HwVendorKey = attribute.Key("hw.vendor")
	// Which way the data went, as the accelerator sees it. (string, one of the values below)
	NetworkIODirectionKey = attribute.Key("network.io.direction")
	// The exit code of the wrapped program. (int)
	ProcessExitCodeKey = attribute.Key("process.exit.code")
	// The process identifier in the process namespace of this host. (int)
	ProcessPIDKey = attribute.Key("process.pid")
	// Tells this instance of the service from every other one; Prometheus makes it the label "instance". (string)
	ServiceInstanceIDKey = attribute.Key("service.instance.id")
	// The service's name, which OTEL_SERVICE_NAME can set; Prometheus makes it the label "job". (string)
	ServiceNameKey = attribute.Key("service.name")
	// The part of this program that fails while the rest goes on. (string)
	AgentPartKey = attribute.Key("stallspan.agent.part")
	// Seconds that 95 of 100 windows like this one do not exceed here, of those that were not slow. (double)
	BaselineP95Key = attribute.Key("stallspan.baseline.p95")
	// Share of the window with at least one operation under way, on the disk where it was highest. (double)
	DiskBusyRatioKey = attribute.Key("stallspan.disk.busy.ratio")
	// The disks that the work stands on, as in system.device.name; none of them stands on another. (string[])
	DiskNamesKey = attribute.Key("stallspan.disk.names")
	// Mean number of operations under way during the window, summed over the disks. (double)
	DiskQueueDepthKey = attribute.Key("stallspan.disk.queue.depth")
	// Mean seconds from submission to completion of a read, over all the disks. (double)
	DiskReadAwaitKey = attribute.Key("stallspan.disk.read.await")
	// Bytes read during the window, summed over the disks. (int)
	DiskReadBytesKey = attribute.Key("stallspan.disk.read.bytes")
	// Reads that completed during the window, summed over the disks. (int)
	DiskReadOperationsKey = attribute.Key("stallspan.disk.read.operations")
	// Mean seconds from submission to completion of a write, over all the disks. (double)
	DiskWriteAwaitKey = attribute.Key("stallspan.disk.write.await")
	// Bytes written during the window, summed over the disks. (int)
	DiskWriteBytesKey = attribute.Key("stallspan.disk.write.bytes")
	// Writes that completed during the window, summed over the disks. (int)
	DiskWriteOperationsKey = attribute.Key("stallspan.disk.write.operations")
	// When what is over had begun, as RFC 3339 writes it, in UTC. (string)
	EventBeganKey = attribute.Key("stallspan.event.began")
	// How often it happened since the event before it. (int)
	EventCountKey = attribute.Key("stallspan.event.count")
	// The value from which on the condition holds, in the unit of stallspan.event.value. (double)
	EventLimitKey = attribute.Key("stallspan.event.limit")
	// True on the record that says that the condition is over; absent on all others. (boolean)
	EventResolvedKey = attribute.Key("stallspan.event.resolved")
	// True on an event that somebody asked for to see where it goes; nothing has happened. (boolean)
	EventTestKey = attribute.Key("stallspan.event.test")
	// What was measured when the event was told. (double)
	EventValueKey = attribute.Key("stallspan.event.value")
	// What happened, in one sentence with its numbers. (string)
	FindingKey = attribute.Key("stallspan.finding")
	// What was found of the accelerators and disks beside the verdict, a sentence each. (string[])
	FindingsKey = attribute.Key("stallspan.findings")
	// Share of the window in which the accelerators worked, as their mean. (double)
	GPUBusyRatioKey = attribute.Key("stallspan.gpu.busy.ratio")
	// Seconds in which the accelerators worked, summed over them. (double)
	GPUBusyTimeKey = attribute.Key("stallspan.gpu.busy.time")
	// Which clock of the accelerator it is. (string, one of the values below)
	GPUClockDomainKey = attribute.Key("stallspan.gpu.clock.domain")
	// What held the clocks down. (string, one of the values below)
	GPUClockThrottleReasonKey = attribute.Key("stallspan.gpu.clock.throttle.reason")
	// The field that was asked for, as the driver's library calls it. (string)
	GPUDriverFieldKey = attribute.Key("stallspan.gpu.driver.field")
	// The function of the driver's library that was called. (string)
	GPUDriverFunctionKey = attribute.Key("stallspan.gpu.driver.function")
	// The accelerators that the window is about, as in hw.id. (string[])
	GPUIDsKey = attribute.Key("stallspan.gpu.ids")
	// How many windows read from the disk at once, slow or not. (int)
	IOStormWindowsKey = attribute.Key("stallspan.io.storm.windows")
	// The model that was loaded, as the program or the caller named it. (string)
	ModelNameKey = attribute.Key("stallspan.model.name")
	// Bytes of the file that the load read, or of all files of the folder. (int)
	ModelSizeKey = attribute.Key("stallspan.model.size")
	// Mounts without a block device on which the window's process had files open. (string[])
	MountPointsKey = attribute.Key("stallspan.mount.points")
	// Share of the load's file or folder that came from memory. (double)
	PageCacheHitRatioKey = attribute.Key("stallspan.page_cache.hit.ratio")
	// Seconds in which every task that was not idle waited for I/O, by the job's own cgroup where it has one. (double)
	PressureIOFullTimeKey = attribute.Key("stallspan.pressure.io.full.time")
	// Seconds in which at least one task waited for I/O, by the job's own cgroup where it has one. (double)
	PressureIOSomeTimeKey = attribute.Key("stallspan.pressure.io.some.time")
	// How many of the tasks waited; full is part of some, so never add the two. (string, one of the values below)
	PressureStallTypeKey = attribute.Key("stallspan.pressure.stall_type")
	// Seconds of the window in which the process ran on a CPU, where there is no accelerator to keep a ledger of. (double)
	ProcessOnCPUTimeKey = attribute.Key("stallspan.process.on_cpu.time")
	// What to try first, in one sentence. (string)
	RemedyKey = attribute.Key("stallspan.remedy")
	// Whether the window took longer than it should have. (boolean)
	SlowKey = attribute.Key("stallspan.slow")
	// By which rule the window counts as slow; the first of threshold, baseline and storage_stall that holds. (string, one of the values below)
	SlownessReasonKey = attribute.Key("stallspan.slowness.reason")
	// How many times faster the window could have been with a perfect disk. (double)
	SpeedupBoundKey = attribute.Key("stallspan.speedup.bound")
	// Seconds of idleness while the input pipeline computed, summed over the accelerators. (double)
	StallCPUTimeKey = attribute.Key("stallspan.stall.cpu.time")
	// Seconds of idleness whose cause was not seen, summed over the accelerators. (double)
	StallOtherTimeKey = attribute.Key("stallspan.stall.other.time")
	// Seconds of idleness while the work waited for storage, summed over the accelerators. (double)
	StallStorageTimeKey = attribute.Key("stallspan.stall.storage.time")
	// The epoch's number as the program printed it, which begins at 0 or at 1. (int)
	TrainingEpochIndexKey = attribute.Key("stallspan.training.epoch.index")
	// The run's name, given by the caller or taken from the command. (string)
	TrainingRunNameKey = attribute.Key("stallspan.training.run.name")
	// Half the width of the interval that surely holds the ledger's figures, as a share of the window; only above 0.01. (double)
	UncertaintyRatioKey = attribute.Key("stallspan.uncertainty.ratio")
	// What held the work up. (string, one of the values below)
	VerdictKey = attribute.Key("stallspan.verdict")
	// True where something was seen for a part of the window alone, so that the figures are of what was seen of it. (boolean)
	WindowInterruptedKey = attribute.Key("stallspan.window.interrupted")
	// What the work was. (string, one of the values below)
	WindowKindKey = attribute.Key("stallspan.window.kind")
	// The name under which the window was announced. (string)
	WindowNameKey = attribute.Key("stallspan.window.name")
	// Whose time the window's figures split. (string, one of the values below)
	WindowScopeKey = attribute.Key("stallspan.window.scope")
	// How the window's two ends became known. (string, one of the values below)
	WindowSourceKey = attribute.Key("stallspan.window.source")
	// True where something other than the window's own end ended it. (boolean)
	WindowUnfinishedKey = attribute.Key("stallspan.window.unfinished")
	// The block device's name as in /dev and /proc/diskstats. (string)
	SystemDeviceNameKey = attribute.Key("system.device.name")
)

// Values of cpu.mode.
var (
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
)

// Values of disk.io.direction.
var (
	// From the device.
	DiskIODirectionRead = DiskIODirectionKey.String("read")
	// To the device.
	DiskIODirectionWrite = DiskIODirectionKey.String("write")
)

// Values of error.type.
var (
	// Errors of memory that ECC mended.
	ErrorTypeCorrected = ErrorTypeKey.String("corrected")
	// Errors of memory that ECC could not mend.
	ErrorTypeUncorrected = ErrorTypeKey.String("uncorrected")
	// Packets that were sent over PCIe again.
	ErrorTypePCIeReplay = ErrorTypeKey.String("pcie_replay")
	// Rows of memory that were replaced by spare ones, for errors in them.
	ErrorTypeRowRemap = ErrorTypeKey.String("row_remap")
	// Pages of memory that are no longer used, for errors in them.
	ErrorTypeRetiredPage = ErrorTypeKey.String("retired_page")
	// XID errors of codes that came when 64 others were counted apart.
	ErrorTypeXidOther = ErrorTypeKey.String("xid_other")
	// Of an NVMe drive, data that it could not read back as they were written.
	ErrorTypeMedia = ErrorTypeKey.String("media")
	// Checksum errors on the link of a drive, mostly its cable's.
	ErrorTypeCRC = ErrorTypeKey.String("crc")
	// Sectors of a drive that were replaced by spare ones; of SCSI drives, grown defects.
	ErrorTypeReallocatedSector = ErrorTypeKey.String("reallocated_sector")
	// Sectors of a drive that cannot be read and wait to be replaced.
	ErrorTypePendingSector = ErrorTypeKey.String("pending_sector")
	// Errors of a drive that it told the machine of, because it could not mend them.
	ErrorTypeUncorrectable = ErrorTypeKey.String("uncorrectable")
)

// Values of hw.gpu.task.
var (
	// Kernels of any kind, as opposed to video encoding or decoding.
	HwGPUTaskGeneral = HwGPUTaskKey.String("general")
	// Video encoding.
	HwGPUTaskEncoder = HwGPUTaskKey.String("encoder")
	// Video decoding.
	HwGPUTaskDecoder = HwGPUTaskKey.String("decoder")
)

// Values of hw.limit_type.
var (
	// The most that the accelerator and its slot can do.
	HwLimitTypeMax = HwLimitTypeKey.String("max")
	// Above it the accelerator slows itself down, and a drive says that it is too hot.
	HwLimitTypeHighDegraded = HwLimitTypeKey.String("high.degraded")
	// Above it the accelerator switches itself off.
	HwLimitTypeHighCritical = HwLimitTypeKey.String("high.critical")
)

// Values of hw.physical_disk.state.
var (
	// What is left.
	HwPhysicalDiskStateRemaining = HwPhysicalDiskStateKey.String("remaining")
)

// Values of hw.state.
var (
	// It can be read, and says nothing of a fault.
	HwStateOK = HwStateKey.String("ok")
	// Of an accelerator, its driver has not answered for too long, or it has to be reset for a row or page of its memory to be replaced. Of a drive, there is something to look at, like heat, wear, or bad sectors that do not become more.
	HwStateDegraded = HwStateKey.String("degraded")
	// An accelerator that is lost to its driver or no longer listed; a drive that says so itself, does not answer, or vanished.
	HwStateFailed = HwStateKey.String("failed")
	// A row of an accelerator's memory could not be replaced, so the accelerator has to be; or what is on a drive is to be copied, because its counts of errors grow.
	HwStatePredictedFailure = HwStateKey.String("predicted_failure")
)

// Values of hw.type.
var (
	// An accelerator.
	HwTypeGPU = HwTypeKey.String("gpu")
	// A drive.
	HwTypePhysicalDisk = HwTypeKey.String("physical_disk")
)

// Values of network.io.direction.
var (
	// To the accelerator.
	NetworkIODirectionReceive = NetworkIODirectionKey.String("receive")
	// From the accelerator.
	NetworkIODirectionTransmit = NetworkIODirectionKey.String("transmit")
)

// Values of stallspan.gpu.clock.domain.
var (
	// The multiprocessors.
	GPUClockDomainSM = GPUClockDomainKey.String("sm")
	// The memory.
	GPUClockDomainMemory = GPUClockDomainKey.String("memory")
	// The chip's part for graphics.
	GPUClockDomainGraphics = GPUClockDomainKey.String("graphics")
	// The video encoder and decoder.
	GPUClockDomainVideo = GPUClockDomainKey.String("video")
)

// Values of stallspan.gpu.clock.throttle.reason.
var (
	// The power that it may draw.
	GPUClockThrottleReasonPower = GPUClockThrottleReasonKey.String("power")
	// The driver, which keeps chip or memory below their highest working temperature.
	GPUClockThrottleReasonThermal = GPUClockThrottleReasonKey.String("thermal")
	// The chip's own protection from heat.
	GPUClockThrottleReasonHwThermal = GPUClockThrottleReasonKey.String("hw_thermal")
	// A signal of the machine's power supply.
	GPUClockThrottleReasonPowerBrake = GPUClockThrottleReasonKey.String("power_brake")
	// Another accelerator of its group, with which it keeps in step.
	GPUClockThrottleReasonSyncBoost = GPUClockThrottleReasonKey.String("sync_boost")
	// A limit of the board.
	GPUClockThrottleReasonBoard = GPUClockThrottleReasonKey.String("board")
	// The voltage that is safe for the chip.
	GPUClockThrottleReasonReliability = GPUClockThrottleReasonKey.String("reliability")
)

// Values of stallspan.pressure.stall_type.
var (
	// At least one task waited.
	PressureStallTypeSome = PressureStallTypeKey.String("some")
	// Every task that was not idle waited.
	PressureStallTypeFull = PressureStallTypeKey.String("full")
)

// Values of stallspan.slowness.reason.
var (
	// It took longer than windows of its kind usually do here.
	SlownessReasonBaseline = SlownessReasonKey.String("baseline")
	// It took longer than the limit that was set.
	SlownessReasonThreshold = SlownessReasonKey.String("threshold")
	// It waited for storage for too large a part of its time.
	SlownessReasonStorageStall = SlownessReasonKey.String("storage_stall")
)

// Values of stallspan.verdict.
var (
	// The accelerator was busy nearly all the time.
	VerdictGPUBound = VerdictKey.String("gpu_bound")
	// Storage held the work up.
	VerdictStorageBound = VerdictKey.String("storage_bound")
	// The input pipeline's computing held the work up.
	VerdictCPUBound = VerdictKey.String("cpu_bound")
	// Storage and computing both held the work up.
	VerdictMixed = VerdictKey.String("mixed")
	// The cause was not seen, or the evidence is missing.
	VerdictUnknown = VerdictKey.String("unknown")
)

// Values of stallspan.window.kind.
var (
	// A model came from storage into memory.
	WindowKindModelLoad = WindowKindKey.String("model_load")
	// One pass over the training data.
	WindowKindEpoch = WindowKindKey.String("epoch")
	// The state of a training went to storage.
	WindowKindCheckpoint = WindowKindKey.String("checkpoint")
	// Anything else that a program names.
	WindowKindCustom = WindowKindKey.String("custom")
)

// Values of stallspan.window.scope.
var (
	// Everything on the machine, because no process was told, found or followed.
	WindowScopeHost = WindowScopeKey.String("host")
	// A process and those that it started.
	WindowScopeProcess = WindowScopeKey.String("process")
	// The processes of a container.
	WindowScopeContainer = WindowScopeKey.String("container")
)

// Values of stallspan.window.source.
var (
	// The program, its output or a caller told of both ends as they happened.
	WindowSourceAnnounced = WindowSourceKey.String("announced")
	// A span that arrived afterwards.
	WindowSourceSpan = WindowSourceKey.String("span")
	// Seen from outside, by the opening of model files. Reserved, nothing sends it yet.
	WindowSourceDetected = WindowSourceKey.String("detected")
)

// HwEnergy: Energy that the accelerator has used since its driver was loaded.
var HwEnergy = Metric{
	Name: "hw.energy", Unit: "J", Kind: Counter,
	Description: "Energy that the accelerator has used since its driver was loaded.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwTypeKey, attribute.STRING, true},
		{HwVendorKey, attribute.STRING, false},
	},
}

// HwErrors: Errors of the accelerator or drive, by kind.
var HwErrors = Metric{
	Name: "hw.errors", Unit: "{error}", Kind: Counter, Int: true,
	Description: "Errors of the accelerator or drive, by kind.",
	Attributes: []AttributeRef{
		{ErrorTypeKey, attribute.STRING, true}, {HwDriverVersionKey, attribute.STRING, false},
		{HwFirmwareVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwPhysicalDiskTypeKey, attribute.STRING, false},
		{HwSerialNumberKey, attribute.STRING, false}, {HwTypeKey, attribute.STRING, true},
		{HwVendorKey, attribute.STRING, false}, {SystemDeviceNameKey, attribute.STRING, false},
	},
}

// HwFanSpeedRatio: Speed of the accelerator's fan as a share of its full speed, as the driver wants it.
var HwFanSpeedRatio = Metric{
	Name: "hw.fan.speed_ratio", Unit: "1", Kind: Gauge,
	Description: "Speed of the accelerator's fan as a share of its full speed, as the driver wants it.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// HwGPUIO: Bytes that the accelerator received and sent over PCIe.
var HwGPUIO = Metric{
	Name: "hw.gpu.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that the accelerator received and sent over PCIe.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{NetworkIODirectionKey, attribute.STRING, true},
	},
}

// HwGPUMemoryLimit: Memory of the accelerator.
var HwGPUMemoryLimit = Metric{
	Name: "hw.gpu.memory.limit", Unit: "By", Kind: UpDownCounter, Int: true,
	Description: "Memory of the accelerator.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// HwGPUMemoryUsage: Memory of the accelerator that is in use.
var HwGPUMemoryUsage = Metric{
	Name: "hw.gpu.memory.usage", Unit: "By", Kind: UpDownCounter, Int: true,
	Description: "Memory of the accelerator that is in use.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// HwGPUMemoryUtilization: Share of the accelerator's memory that is in use.
var HwGPUMemoryUtilization = Metric{
	Name: "hw.gpu.memory.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the accelerator's memory that is in use.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// HwGPUUtilization: Share of the time in which the accelerator did work of the task.
var HwGPUUtilization = Metric{
	Name: "hw.gpu.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time in which the accelerator did work of the task.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwGPUTaskKey, attribute.STRING, true},
		{HwIDKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// HwPhysicalDiskEnduranceUtilization: Share of the drive's rated writes that is left.
var HwPhysicalDiskEnduranceUtilization = Metric{
	Name: "hw.physical_disk.endurance_utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the drive's rated writes that is left.",
	Attributes: []AttributeRef{
		{HwFirmwareVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwPhysicalDiskStateKey, attribute.STRING, true}, {HwPhysicalDiskTypeKey, attribute.STRING, false},
		{HwSerialNumberKey, attribute.STRING, false}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// HwPhysicalDiskSize: Size of the drive.
var HwPhysicalDiskSize = Metric{
	Name: "hw.physical_disk.size", Unit: "By", Kind: UpDownCounter, Int: true,
	Description: "Size of the drive.",
	Attributes: []AttributeRef{
		{HwFirmwareVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwPhysicalDiskTypeKey, attribute.STRING, false}, {HwSerialNumberKey, attribute.STRING, false},
		{SystemDeviceNameKey, attribute.STRING, true},
	},
}

// HwPhysicalDiskSmart: What the drive tells of its own health, as a raw value.
var HwPhysicalDiskSmart = Metric{
	Name: "hw.physical_disk.smart", Unit: "1", Kind: Gauge, Int: true,
	Description: "What the drive tells of its own health, as a raw value.",
	Attributes: []AttributeRef{
		{HwFirmwareVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwPhysicalDiskSmartAttributeKey, attribute.STRING, true}, {HwPhysicalDiskTypeKey, attribute.STRING, false},
		{HwSerialNumberKey, attribute.STRING, false}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// HwPower: Power that the accelerator draws.
var HwPower = Metric{
	Name: "hw.power", Unit: "W", Kind: Gauge,
	Description: "Power that the accelerator draws.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwTypeKey, attribute.STRING, true},
		{HwVendorKey, attribute.STRING, false},
	},
}

// HwStatus: 1 for the state that the accelerator or drive is in, 0 for the others.
var HwStatus = Metric{
	Name: "hw.status", Unit: "1", Kind: UpDownCounter, Int: true,
	Description: "1 for the state that the accelerator or drive is in, 0 for the others.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwFirmwareVersionKey, attribute.STRING, false},
		{HwIDKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwPhysicalDiskTypeKey, attribute.STRING, false},
		{HwSerialNumberKey, attribute.STRING, false}, {HwStateKey, attribute.STRING, true},
		{HwTypeKey, attribute.STRING, true}, {HwVendorKey, attribute.STRING, false},
		{SystemDeviceNameKey, attribute.STRING, false},
	},
}

// HwTemperature: Temperature of the accelerator's chip or of its memory, or of a drive.
var HwTemperature = Metric{
	Name: "hw.temperature", Unit: "Cel", Kind: Gauge,
	Description: "Temperature of the accelerator's chip or of its memory, or of a drive.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwFirmwareVersionKey, attribute.STRING, false},
		{HwIDKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwPhysicalDiskTypeKey, attribute.STRING, false},
		{HwSensorLocationKey, attribute.STRING, false}, {HwSerialNumberKey, attribute.STRING, false},
		{HwVendorKey, attribute.STRING, false}, {SystemDeviceNameKey, attribute.STRING, false},
	},
}

// HwTemperatureLimit: Temperature at which the accelerator slows down or switches off, or that a drive calls too hot.
var HwTemperatureLimit = Metric{
	Name: "hw.temperature.limit", Unit: "Cel", Kind: Gauge,
	Description: "Temperature at which the accelerator slows down or switches off, or that a drive calls too hot.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwFirmwareVersionKey, attribute.STRING, false},
		{HwIDKey, attribute.STRING, true}, {HwLimitTypeKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false},
		{HwNameKey, attribute.STRING, false}, {HwParentKey, attribute.STRING, false},
		{HwPhysicalDiskTypeKey, attribute.STRING, false}, {HwSensorLocationKey, attribute.STRING, false},
		{HwSerialNumberKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{SystemDeviceNameKey, attribute.STRING, false},
	},
}

// ProcessDiskIO: Bytes that storage fetched or took for the process.
var ProcessDiskIO = Metric{
	Name: "process.disk.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that storage fetched or took for the process.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {ProcessPIDKey, attribute.INT64, false},
	},
}

// DiskAwait: Mean time from submission to completion of the operations that completed since the previous collection.
var DiskAwait = Metric{
	Name: "stallspan.disk.await", Unit: "s", Kind: Gauge,
	Description: "Mean time from submission to completion of the operations that completed since the previous collection.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// DiskDiscardIO: Bytes that were discarded (trimmed).
var DiskDiscardIO = Metric{
	Name: "stallspan.disk.discard.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that were discarded (trimmed).",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskDiscardOperations: Discards (trims) that completed.
var DiskDiscardOperations = Metric{
	Name: "stallspan.disk.discard.operations", Unit: "{operation}", Kind: Counter, Int: true,
	Description: "Discards (trims) that completed.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskDiscardTime: Time spent in discards, summed over operations.
var DiskDiscardTime = Metric{
	Name: "stallspan.disk.discard.time", Unit: "s", Kind: Counter,
	Description: "Time spent in discards, summed over operations.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskFlushOperations: Cache flushes that completed.
var DiskFlushOperations = Metric{
	Name: "stallspan.disk.flush.operations", Unit: "{operation}", Kind: Counter, Int: true,
	Description: "Cache flushes that completed.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskFlushTime: Time spent in cache flushes, summed over operations.
var DiskFlushTime = Metric{
	Name: "stallspan.disk.flush.time", Unit: "s", Kind: Counter,
	Description: "Time spent in cache flushes, summed over operations.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskQueueDepth: Mean number of operations under way since the previous collection.
var DiskQueueDepth = Metric{
	Name: "stallspan.disk.queue.depth", Unit: "1", Kind: Gauge,
	Description: "Mean number of operations under way since the previous collection.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// DiskThroughputCeiling: The highest throughput that was seen so far, over about a second, or that was measured.
var DiskThroughputCeiling = Metric{
	Name: "stallspan.disk.throughput.ceiling", Unit: "By/s", Kind: Gauge,
	Description: "The highest throughput that was seen so far, over about a second, or that was measured.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// DiskUtilization: Share of the time since the previous collection with at least one operation under way.
var DiskUtilization = Metric{
	Name: "stallspan.disk.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time since the previous collection with at least one operation under way.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// GPUBusyTime: Time in which at least one kernel ran, since Stallspan began to look.
var GPUBusyTime = Metric{
	Name: "stallspan.gpu.busy.time", Unit: "s", Kind: Counter,
	Description: "Time in which at least one kernel ran, since Stallspan began to look.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUClockFrequency: Frequency of the accelerator's clock at the reading.
var GPUClockFrequency = Metric{
	Name: "stallspan.gpu.clock.frequency", Unit: "Hz", Kind: Gauge,
	Description: "Frequency of the accelerator's clock at the reading.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{GPUClockDomainKey, attribute.STRING, true},
	},
}

// GPUClockThrottleTime: Time in which the clocks were held below what the work wanted.
var GPUClockThrottleTime = Metric{
	Name: "stallspan.gpu.clock.throttle.time", Unit: "s", Kind: Counter,
	Description: "Time in which the clocks were held below what the work wanted.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{GPUClockThrottleReasonKey, attribute.STRING, true},
	},
}

// GPUDRAMUtilization: Share of the bandwidth of the accelerator's memory that was used.
var GPUDRAMUtilization = Metric{
	Name: "stallspan.gpu.dram.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the bandwidth of the accelerator's memory that was used.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUDriverCallLongest: The longest time that a call of the function has taken so far.
var GPUDriverCallLongest = Metric{
	Name: "stallspan.gpu.driver.call.longest", Unit: "s", Kind: Gauge,
	Description: "The longest time that a call of the function has taken so far.",
	Attributes:  []AttributeRef{{GPUDriverFunctionKey, attribute.STRING, true}},
}

// GPUDriverCallTime: Time that Stallspan has spent in calls of the function.
var GPUDriverCallTime = Metric{
	Name: "stallspan.gpu.driver.call.time", Unit: "s", Kind: Counter,
	Description: "Time that Stallspan has spent in calls of the function.",
	Attributes:  []AttributeRef{{GPUDriverFunctionKey, attribute.STRING, true}},
}

// GPUDriverCalls: Calls of the function that Stallspan made and that returned.
var GPUDriverCalls = Metric{
	Name: "stallspan.gpu.driver.calls", Unit: "{call}", Kind: Counter, Int: true,
	Description: "Calls of the function that Stallspan made and that returned.",
	Attributes:  []AttributeRef{{GPUDriverFunctionKey, attribute.STRING, true}},
}

// GPUDriverFieldTime: Time that the driver says it took for the values of a field.
var GPUDriverFieldTime = Metric{
	Name: "stallspan.gpu.driver.field.time", Unit: "s", Kind: Counter,
	Description: "Time that the driver says it took for the values of a field.",
	Attributes:  []AttributeRef{{GPUDriverFieldKey, attribute.STRING, true}},
}

// GPUDriverSessions: Times that Stallspan began to use the driver.
var GPUDriverSessions = Metric{
	Name: "stallspan.gpu.driver.sessions", Unit: "{session}", Kind: Counter, Int: true,
	Description: "Times that Stallspan began to use the driver.",
	Attributes:  []AttributeRef{},
}

// GPUDriverValuesDropped: Values from the driver that no such hardware can have, which were left out.
var GPUDriverValuesDropped = Metric{
	Name: "stallspan.gpu.driver.values.dropped", Unit: "{value}", Kind: Counter, Int: true,
	Description: "Values from the driver that no such hardware can have, which were left out.",
	Attributes:  []AttributeRef{},
}

// GPUMemoryControllerUtilization: Share of the time in which the accelerator's memory was read or written.
var GPUMemoryControllerUtilization = Metric{
	Name: "stallspan.gpu.memory.controller.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time in which the accelerator's memory was read or written.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUMemoryReserved: Memory of the accelerator that its driver keeps for itself.
var GPUMemoryReserved = Metric{
	Name: "stallspan.gpu.memory.reserved", Unit: "By", Kind: UpDownCounter, Int: true,
	Description: "Memory of the accelerator that its driver keeps for itself.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUNVLinkIO: Bytes that the accelerator received and sent over all of its NVLinks.
var GPUNVLinkIO = Metric{
	Name: "stallspan.gpu.nvlink.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that the accelerator received and sent over all of its NVLinks.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{NetworkIODirectionKey, attribute.STRING, true},
	},
}

// GPUPCIeLinkGeneration: PCIe generation of the accelerator's link; it falls while the accelerator idles.
var GPUPCIeLinkGeneration = Metric{
	Name: "stallspan.gpu.pcie.link.generation", Unit: "1", Kind: Gauge, Int: true,
	Description: "PCIe generation of the accelerator's link; it falls while the accelerator idles.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwLimitTypeKey, attribute.STRING, false}, {HwModelKey, attribute.STRING, false},
		{HwNameKey, attribute.STRING, false}, {HwParentKey, attribute.STRING, false},
		{HwVendorKey, attribute.STRING, false},
	},
}

// GPUPCIeLinkWidth: PCIe lanes of the accelerator's link.
var GPUPCIeLinkWidth = Metric{
	Name: "stallspan.gpu.pcie.link.width", Unit: "{lane}", Kind: Gauge, Int: true,
	Description: "PCIe lanes of the accelerator's link.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwLimitTypeKey, attribute.STRING, false}, {HwModelKey, attribute.STRING, false},
		{HwNameKey, attribute.STRING, false}, {HwParentKey, attribute.STRING, false},
		{HwVendorKey, attribute.STRING, false},
	},
}

// GPUPCIeThroughput: Bytes a second that the accelerator received and sent over PCIe, where it does not count them.
var GPUPCIeThroughput = Metric{
	Name: "stallspan.gpu.pcie.throughput", Unit: "By/s", Kind: Gauge,
	Description: "Bytes a second that the accelerator received and sent over PCIe, where it does not count them.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
		{NetworkIODirectionKey, attribute.STRING, true},
	},
}

// GPUPowerLimit: The power that the accelerator may draw, as its driver enforces it now.
var GPUPowerLimit = Metric{
	Name: "stallspan.gpu.power.limit", Unit: "W", Kind: Gauge,
	Description: "The power that the accelerator may draw, as its driver enforces it now.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwTypeKey, attribute.STRING, true},
		{HwVendorKey, attribute.STRING, false},
	},
}

// GPUSMOccupancy: Warps that were resident on the accelerator's multiprocessors, as a share of what fits.
var GPUSMOccupancy = Metric{
	Name: "stallspan.gpu.sm.occupancy", Unit: "1", Kind: Gauge,
	Description: "Warps that were resident on the accelerator's multiprocessors, as a share of what fits.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUSMUtilization: Share of the time in which the accelerator's multiprocessors had work, averaged over all of them.
var GPUSMUtilization = Metric{
	Name: "stallspan.gpu.sm.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time in which the accelerator's multiprocessors had work, averaged over all of them.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// GPUTensorUtilization: Share of the time in which the accelerator's tensor cores worked.
var GPUTensorUtilization = Metric{
	Name: "stallspan.gpu.tensor.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time in which the accelerator's tensor cores worked.",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwParentKey, attribute.STRING, false}, {HwVendorKey, attribute.STRING, false},
	},
}

// ModelLoadDuration: Duration of model loads.
var ModelLoadDuration = Metric{
	Name: "stallspan.model.load.duration", Unit: "s", Kind: Histogram,
	Description: "Duration of model loads.",
	Attributes: []AttributeRef{
		{ModelNameKey, attribute.STRING, false}, {SlowKey, attribute.BOOL, false}, {VerdictKey, attribute.STRING, false},
	},
}

// PhysicalDiskIO: Bytes that were read from the drive and written to it in its whole life, by its own count.
var PhysicalDiskIO = Metric{
	Name: "stallspan.physical_disk.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that were read from the drive and written to it in its whole life, by its own count.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {HwFirmwareVersionKey, attribute.STRING, false},
		{HwIDKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwPhysicalDiskTypeKey, attribute.STRING, false}, {HwSerialNumberKey, attribute.STRING, false},
		{SystemDeviceNameKey, attribute.STRING, true},
	},
}

// PhysicalDiskPowerOnTime: Time for which the drive was switched on in its whole life. Most drives count whole hours.
var PhysicalDiskPowerOnTime = Metric{
	Name: "stallspan.physical_disk.power_on.time", Unit: "s", Kind: Counter,
	Description: "Time for which the drive was switched on in its whole life. Most drives count whole hours.",
	Attributes: []AttributeRef{
		{HwFirmwareVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwModelKey, attribute.STRING, false}, {HwNameKey, attribute.STRING, false},
		{HwPhysicalDiskTypeKey, attribute.STRING, false}, {HwSerialNumberKey, attribute.STRING, false},
		{SystemDeviceNameKey, attribute.STRING, true},
	},
}

// PressureCPUStallTime: Time in which runnable tasks waited for a CPU.
var PressureCPUStallTime = Metric{
	Name: "stallspan.pressure.cpu.stall.time", Unit: "s", Kind: Counter,
	Description: "Time in which runnable tasks waited for a CPU.",
	Attributes:  []AttributeRef{{PressureStallTypeKey, attribute.STRING, true}},
}

// PressureIOStallTime: Time in which tasks waited for block devices and network file systems.
var PressureIOStallTime = Metric{
	Name: "stallspan.pressure.io.stall.time", Unit: "s", Kind: Counter,
	Description: "Time in which tasks waited for block devices and network file systems.",
	Attributes:  []AttributeRef{{PressureStallTypeKey, attribute.STRING, true}},
}

// PressureMemoryStallTime: Time in which tasks waited for memory, by reclaim, swap-in or page-cache thrashing.
var PressureMemoryStallTime = Metric{
	Name: "stallspan.pressure.memory.stall.time", Unit: "s", Kind: Counter,
	Description: "Time in which tasks waited for memory, by reclaim, swap-in or page-cache thrashing.",
	Attributes:  []AttributeRef{{PressureStallTypeKey, attribute.STRING, true}},
}

// ProcessGPUMemoryUsage: Memory of an accelerator that a process holds.
var ProcessGPUMemoryUsage = Metric{
	Name: "stallspan.process.gpu.memory.usage", Unit: "By", Kind: UpDownCounter, Int: true,
	Description: "Memory of an accelerator that a process holds.",
	Attributes:  []AttributeRef{{HwIDKey, attribute.STRING, true}, {ProcessPIDKey, attribute.INT64, true}},
}

// TrainingEpochDuration: Duration of training epochs.
var TrainingEpochDuration = Metric{
	Name: "stallspan.training.epoch.duration", Unit: "s", Kind: Histogram,
	Description: "Duration of training epochs.",
	Attributes: []AttributeRef{
		{SlowKey, attribute.BOOL, false}, {TrainingRunNameKey, attribute.STRING, false},
		{VerdictKey, attribute.STRING, false},
	},
}

// SystemCPUTime: Time that the logical CPU spent in each mode.
var SystemCPUTime = Metric{
	Name: "system.cpu.time", Unit: "s", Kind: Counter,
	Description: "Time that the logical CPU spent in each mode.",
	Attributes:  []AttributeRef{{CPULogicalNumberKey, attribute.INT64, true}, {CPUModeKey, attribute.STRING, true}},
}

// SystemCPUUtilization: Share of the time since the previous collection that the logical CPU spent in each mode.
var SystemCPUUtilization = Metric{
	Name: "system.cpu.utilization", Unit: "1", Kind: Gauge,
	Description: "Share of the time since the previous collection that the logical CPU spent in each mode.",
	Attributes:  []AttributeRef{{CPULogicalNumberKey, attribute.INT64, true}, {CPUModeKey, attribute.STRING, true}},
}

// SystemDiskIO: Bytes that were transferred.
var SystemDiskIO = Metric{
	Name: "system.disk.io", Unit: "By", Kind: Counter, Int: true,
	Description: "Bytes that were transferred.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// SystemDiskIOTime: Time with at least one operation under way.
var SystemDiskIOTime = Metric{
	Name: "system.disk.io_time", Unit: "s", Kind: Counter,
	Description: "Time with at least one operation under way.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// SystemDiskMerged: Requests that were merged into a neighbouring one before they reached the device.
var SystemDiskMerged = Metric{
	Name: "system.disk.merged", Unit: "{operation}", Kind: Counter, Int: true,
	Description: "Requests that were merged into a neighbouring one before they reached the device.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// SystemDiskOperationTime: Time from submission to completion, summed over operations.
var SystemDiskOperationTime = Metric{
	Name: "system.disk.operation_time", Unit: "s", Kind: Counter,
	Description: "Time from submission to completion, summed over operations.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// SystemDiskOperations: Operations that completed.
var SystemDiskOperations = Metric{
	Name: "system.disk.operations", Unit: "{operation}", Kind: Counter, Int: true,
	Description: "Operations that completed.",
	Attributes: []AttributeRef{
		{DiskIODirectionKey, attribute.STRING, true}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// SystemDiskPendingOperations: Operations under way at the moment of the reading.
var SystemDiskPendingOperations = Metric{
	Name: "system.disk.pending_operations", Unit: "{operation}", Kind: UpDownCounter, Int: true,
	Description: "Operations under way at the moment of the reading.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// SystemDiskWeightedIOTime: Number of operations under way, integrated over time.
var SystemDiskWeightedIOTime = Metric{
	Name: "system.disk.weighted_io_time", Unit: "s", Kind: Counter,
	Description: "Number of operations under way, integrated over time.",
	Attributes:  []AttributeRef{{SystemDeviceNameKey, attribute.STRING, true}},
}

// EpochSpan: One epoch of a training run. Named "epoch {stallspan.training.run.name}".
var EpochSpan = Span{
	Type: "stallspan.epoch",
	Attributes: []AttributeRef{
		{BaselineP95Key, attribute.FLOAT64, false}, {DiskBusyRatioKey, attribute.FLOAT64, false},
		{DiskNamesKey, attribute.STRINGSLICE, false}, {DiskQueueDepthKey, attribute.FLOAT64, false},
		{DiskReadAwaitKey, attribute.FLOAT64, false}, {DiskReadBytesKey, attribute.INT64, false},
		{DiskReadOperationsKey, attribute.INT64, false}, {DiskWriteAwaitKey, attribute.FLOAT64, false},
		{DiskWriteBytesKey, attribute.INT64, false}, {DiskWriteOperationsKey, attribute.INT64, false},
		{FindingKey, attribute.STRING, false}, {FindingsKey, attribute.STRINGSLICE, false},
		{GPUBusyRatioKey, attribute.FLOAT64, false}, {GPUBusyTimeKey, attribute.FLOAT64, false},
		{GPUIDsKey, attribute.STRINGSLICE, false}, {MountPointsKey, attribute.STRINGSLICE, false},
		{PressureIOFullTimeKey, attribute.FLOAT64, false}, {PressureIOSomeTimeKey, attribute.FLOAT64, false},
		{ProcessOnCPUTimeKey, attribute.FLOAT64, false}, {RemedyKey, attribute.STRING, false},
		{SlowKey, attribute.BOOL, true}, {SlownessReasonKey, attribute.STRING, false},
		{SpeedupBoundKey, attribute.FLOAT64, false}, {StallCPUTimeKey, attribute.FLOAT64, false},
		{StallOtherTimeKey, attribute.FLOAT64, false}, {StallStorageTimeKey, attribute.FLOAT64, false},
		{TrainingEpochIndexKey, attribute.INT64, false}, {TrainingRunNameKey, attribute.STRING, false},
		{UncertaintyRatioKey, attribute.FLOAT64, false}, {VerdictKey, attribute.STRING, true},
		{WindowInterruptedKey, attribute.BOOL, false}, {WindowKindKey, attribute.STRING, true},
		{WindowScopeKey, attribute.STRING, true}, {WindowSourceKey, attribute.STRING, true},
		{WindowUnfinishedKey, attribute.BOOL, false},
	},
}

// LoadSpan: One load of a model. Named "load {stallspan.model.name}".
var LoadSpan = Span{
	Type: "stallspan.load",
	Attributes: []AttributeRef{
		{FilePathKey, attribute.STRING, false}, {BaselineP95Key, attribute.FLOAT64, false},
		{DiskBusyRatioKey, attribute.FLOAT64, false}, {DiskNamesKey, attribute.STRINGSLICE, false},
		{DiskQueueDepthKey, attribute.FLOAT64, false}, {DiskReadAwaitKey, attribute.FLOAT64, false},
		{DiskReadBytesKey, attribute.INT64, false}, {DiskReadOperationsKey, attribute.INT64, false},
		{DiskWriteAwaitKey, attribute.FLOAT64, false}, {DiskWriteBytesKey, attribute.INT64, false},
		{DiskWriteOperationsKey, attribute.INT64, false}, {FindingKey, attribute.STRING, false},
		{FindingsKey, attribute.STRINGSLICE, false}, {GPUBusyRatioKey, attribute.FLOAT64, false},
		{GPUBusyTimeKey, attribute.FLOAT64, false}, {GPUIDsKey, attribute.STRINGSLICE, false},
		{ModelNameKey, attribute.STRING, false}, {ModelSizeKey, attribute.INT64, false},
		{MountPointsKey, attribute.STRINGSLICE, false}, {PageCacheHitRatioKey, attribute.FLOAT64, false},
		{PressureIOFullTimeKey, attribute.FLOAT64, false}, {PressureIOSomeTimeKey, attribute.FLOAT64, false},
		{ProcessOnCPUTimeKey, attribute.FLOAT64, false}, {RemedyKey, attribute.STRING, false},
		{SlowKey, attribute.BOOL, true}, {SlownessReasonKey, attribute.STRING, false},
		{SpeedupBoundKey, attribute.FLOAT64, false}, {StallCPUTimeKey, attribute.FLOAT64, false},
		{StallOtherTimeKey, attribute.FLOAT64, false}, {StallStorageTimeKey, attribute.FLOAT64, false},
		{TrainingRunNameKey, attribute.STRING, false}, {UncertaintyRatioKey, attribute.FLOAT64, false},
		{VerdictKey, attribute.STRING, true}, {WindowInterruptedKey, attribute.BOOL, false},
		{WindowKindKey, attribute.STRING, true}, {WindowScopeKey, attribute.STRING, true},
		{WindowSourceKey, attribute.STRING, true}, {WindowUnfinishedKey, attribute.BOOL, false},
	},
}

// RunSpan: The wrapped program from its start to its exit, parent of the windows within. Named "run {stallspan.training.run.name}".
var RunSpan = Span{
	Type: "stallspan.run",
	Attributes: []AttributeRef{
		{ProcessExitCodeKey, attribute.INT64, false}, {ProcessPIDKey, attribute.INT64, false},
		{DiskBusyRatioKey, attribute.FLOAT64, false}, {DiskNamesKey, attribute.STRINGSLICE, false},
		{DiskQueueDepthKey, attribute.FLOAT64, false}, {DiskReadAwaitKey, attribute.FLOAT64, false},
		{DiskReadBytesKey, attribute.INT64, false}, {DiskReadOperationsKey, attribute.INT64, false},
		{DiskWriteAwaitKey, attribute.FLOAT64, false}, {DiskWriteBytesKey, attribute.INT64, false},
		{DiskWriteOperationsKey, attribute.INT64, false}, {FindingKey, attribute.STRING, false},
		{FindingsKey, attribute.STRINGSLICE, false}, {GPUBusyRatioKey, attribute.FLOAT64, false},
		{GPUBusyTimeKey, attribute.FLOAT64, false}, {GPUIDsKey, attribute.STRINGSLICE, false},
		{MountPointsKey, attribute.STRINGSLICE, false}, {PressureIOFullTimeKey, attribute.FLOAT64, false},
		{PressureIOSomeTimeKey, attribute.FLOAT64, false}, {ProcessOnCPUTimeKey, attribute.FLOAT64, false},
		{RemedyKey, attribute.STRING, false}, {SlowKey, attribute.BOOL, true},
		{SlownessReasonKey, attribute.STRING, false}, {SpeedupBoundKey, attribute.FLOAT64, false},
		{StallCPUTimeKey, attribute.FLOAT64, false}, {StallOtherTimeKey, attribute.FLOAT64, false},
		{StallStorageTimeKey, attribute.FLOAT64, false}, {TrainingRunNameKey, attribute.STRING, false},
		{UncertaintyRatioKey, attribute.FLOAT64, false}, {VerdictKey, attribute.STRING, true},
		{WindowInterruptedKey, attribute.BOOL, false}, {WindowKindKey, attribute.STRING, true},
		{WindowNameKey, attribute.STRING, false}, {WindowScopeKey, attribute.STRING, true},
		{WindowSourceKey, attribute.STRING, true}, {WindowUnfinishedKey, attribute.BOOL, false},
	},
}

// StorageStallSpan: A stretch of a window in which the work waited for storage, child of the window's span. Named "storage stall {system.device.name}".
var StorageStallSpan = Span{
	Type: "stallspan.storage_stall",
	Attributes: []AttributeRef{
		{MountPointsKey, attribute.STRINGSLICE, false}, {StallStorageTimeKey, attribute.FLOAT64, false},
		{SystemDeviceNameKey, attribute.STRING, false},
	},
}

// WindowSpan: A checkpoint, or a window that a program named itself. Named "{stallspan.window.kind} {stallspan.window.name}".
var WindowSpan = Span{
	Type: "stallspan.window",
	Attributes: []AttributeRef{
		{DiskBusyRatioKey, attribute.FLOAT64, false}, {DiskNamesKey, attribute.STRINGSLICE, false},
		{DiskQueueDepthKey, attribute.FLOAT64, false}, {DiskReadAwaitKey, attribute.FLOAT64, false},
		{DiskReadBytesKey, attribute.INT64, false}, {DiskReadOperationsKey, attribute.INT64, false},
		{DiskWriteAwaitKey, attribute.FLOAT64, false}, {DiskWriteBytesKey, attribute.INT64, false},
		{DiskWriteOperationsKey, attribute.INT64, false}, {FindingKey, attribute.STRING, false},
		{FindingsKey, attribute.STRINGSLICE, false}, {GPUBusyRatioKey, attribute.FLOAT64, false},
		{GPUBusyTimeKey, attribute.FLOAT64, false}, {GPUIDsKey, attribute.STRINGSLICE, false},
		{MountPointsKey, attribute.STRINGSLICE, false}, {PressureIOFullTimeKey, attribute.FLOAT64, false},
		{PressureIOSomeTimeKey, attribute.FLOAT64, false}, {ProcessOnCPUTimeKey, attribute.FLOAT64, false},
		{RemedyKey, attribute.STRING, false}, {SlowKey, attribute.BOOL, true},
		{SlownessReasonKey, attribute.STRING, false}, {SpeedupBoundKey, attribute.FLOAT64, false},
		{StallCPUTimeKey, attribute.FLOAT64, false}, {StallOtherTimeKey, attribute.FLOAT64, false},
		{StallStorageTimeKey, attribute.FLOAT64, false}, {TrainingRunNameKey, attribute.STRING, false},
		{UncertaintyRatioKey, attribute.FLOAT64, false}, {VerdictKey, attribute.STRING, true},
		{WindowInterruptedKey, attribute.BOOL, false}, {WindowKindKey, attribute.STRING, true},
		{WindowNameKey, attribute.STRING, false}, {WindowScopeKey, attribute.STRING, true},
		{WindowSourceKey, attribute.STRING, true}, {WindowUnfinishedKey, attribute.BOOL, false},
	},
}

// AgentDegradedEvent: A part of this program has failed for a minute, so that less is seen or sent than should be.
var AgentDegradedEvent = Event{
	Name: "stallspan.agent.degraded",
	Attributes: []AttributeRef{
		{AgentPartKey, attribute.STRING, true}, {EventBeganKey, attribute.STRING, false},
		{EventResolvedKey, attribute.BOOL, false}, {EventTestKey, attribute.BOOL, false},
	},
}

// DiskHealthEvent: A drive is failing, by its own word or by its counters, or has vanished.
var DiskHealthEvent = Event{
	Name: "stallspan.disk.health",
	Attributes: []AttributeRef{
		{HwIDKey, attribute.STRING, true}, {HwModelKey, attribute.STRING, false}, {HwStateKey, attribute.STRING, true},
		{EventBeganKey, attribute.STRING, false}, {EventResolvedKey, attribute.BOOL, false},
		{EventTestKey, attribute.BOOL, false}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// DiskSaturatedEvent: A disk has had as much to do as it can for a minute.
var DiskSaturatedEvent = Event{
	Name: "stallspan.disk.saturated",
	Attributes: []AttributeRef{
		{EventBeganKey, attribute.STRING, false}, {EventLimitKey, attribute.FLOAT64, false},
		{EventResolvedKey, attribute.BOOL, false}, {EventTestKey, attribute.BOOL, false},
		{EventValueKey, attribute.FLOAT64, false}, {SystemDeviceNameKey, attribute.STRING, true},
	},
}

// GPUErrorEvent: The driver of a GPU has reported an XID error; over when that code did not come for ten minutes.
var GPUErrorEvent = Event{
	Name: "stallspan.gpu.error",
	Attributes: []AttributeRef{
		{ErrorTypeKey, attribute.STRING, true}, {HwDriverVersionKey, attribute.STRING, false},
		{HwIDKey, attribute.STRING, true}, {HwNameKey, attribute.STRING, false}, {EventBeganKey, attribute.STRING, false},
		{EventCountKey, attribute.INT64, true}, {EventResolvedKey, attribute.BOOL, false},
		{EventTestKey, attribute.BOOL, false},
	},
}

// GPULostEvent: A GPU can no longer be read.
var GPULostEvent = Event{
	Name: "stallspan.gpu.lost",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwNameKey, attribute.STRING, false}, {HwStateKey, attribute.STRING, true},
		{EventBeganKey, attribute.STRING, false}, {EventResolvedKey, attribute.BOOL, false},
		{EventTestKey, attribute.BOOL, false},
	},
}

// GPUTemperatureHighEvent: A GPU or its memory is nearly as hot as where it slows down.
var GPUTemperatureHighEvent = Event{
	Name: "stallspan.gpu.temperature.high",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwNameKey, attribute.STRING, false}, {HwSensorLocationKey, attribute.STRING, true},
		{EventBeganKey, attribute.STRING, false}, {EventLimitKey, attribute.FLOAT64, false},
		{EventResolvedKey, attribute.BOOL, false}, {EventTestKey, attribute.BOOL, false},
		{EventValueKey, attribute.FLOAT64, false},
	},
}

// GPUThrottledEvent: The clocks of a GPU were held down by heat or by the power supply for a good part of the last 30 s.
var GPUThrottledEvent = Event{
	Name: "stallspan.gpu.throttled",
	Attributes: []AttributeRef{
		{HwDriverVersionKey, attribute.STRING, false}, {HwIDKey, attribute.STRING, true},
		{HwNameKey, attribute.STRING, false}, {EventBeganKey, attribute.STRING, false},
		{EventLimitKey, attribute.FLOAT64, false}, {EventResolvedKey, attribute.BOOL, false},
		{EventTestKey, attribute.BOOL, false}, {EventValueKey, attribute.FLOAT64, false},
		{GPUClockThrottleReasonKey, attribute.STRING, false},
	},
}

// IOStormEvent: Several slow windows read from one disk at once; over when no more such windows ended for a minute.
var IOStormEvent = Event{
	Name: "stallspan.io.storm",
	Attributes: []AttributeRef{
		{EventBeganKey, attribute.STRING, false}, {EventResolvedKey, attribute.BOOL, false},
		{EventTestKey, attribute.BOOL, false}, {IOStormWindowsKey, attribute.INT64, true},
		{SystemDeviceNameKey, attribute.STRING, true},
	},
}

// WindowSlowEvent: The window turned slow; the event's time is when it first waited for storage, or its beginning where it did not.
var WindowSlowEvent = Event{
	Name: "stallspan.window.slow",
	Attributes: []AttributeRef{
		{EventTestKey, attribute.BOOL, false}, {FindingKey, attribute.STRING, false},
		{ModelNameKey, attribute.STRING, false}, {SlownessReasonKey, attribute.STRING, true},
		{TrainingEpochIndexKey, attribute.INT64, false}, {TrainingRunNameKey, attribute.STRING, false},
		{VerdictKey, attribute.STRING, false}, {WindowKindKey, attribute.STRING, true},
		{WindowNameKey, attribute.STRING, false},
	},
}

// Metrics lists every metric, by name.
var Metrics = []Metric{
	HwEnergy,
	HwErrors,
	HwFanSpeedRatio,
	HwGPUIO,
	HwGPUMemoryLimit,
	HwGPUMemoryUsage,
	HwGPUMemoryUtilization,
	HwGPUUtilization,
	HwPhysicalDiskEnduranceUtilization,
	HwPhysicalDiskSize,
	HwPhysicalDiskSmart,
	HwPower,
	HwStatus,
	HwTemperature,
	HwTemperatureLimit,
	ProcessDiskIO,
	DiskAwait,
	DiskDiscardIO,
	DiskDiscardOperations,
	DiskDiscardTime,
	DiskFlushOperations,
	DiskFlushTime,
	DiskQueueDepth,
	DiskThroughputCeiling,
	DiskUtilization,
	GPUBusyTime,
	GPUClockFrequency,
	GPUClockThrottleTime,
	GPUDRAMUtilization,
	GPUDriverCallLongest,
	GPUDriverCallTime,
	GPUDriverCalls,
	GPUDriverFieldTime,
	GPUDriverSessions,
	GPUDriverValuesDropped,
	GPUMemoryControllerUtilization,
	GPUMemoryReserved,
	GPUNVLinkIO,
	GPUPCIeLinkGeneration,
	GPUPCIeLinkWidth,
	GPUPCIeThroughput,
	GPUPowerLimit,
	GPUSMOccupancy,
	GPUSMUtilization,
	GPUTensorUtilization,
	ModelLoadDuration,
	PhysicalDiskIO,
	PhysicalDiskPowerOnTime,
	PressureCPUStallTime,
	PressureIOStallTime,
	PressureMemoryStallTime,
	ProcessGPUMemoryUsage,
	TrainingEpochDuration,
	SystemCPUTime,
	SystemCPUUtilization,
	SystemDiskIO,
	SystemDiskIOTime,
	SystemDiskMerged,
	SystemDiskOperationTime,
	SystemDiskOperations,
	SystemDiskPendingOperations,
	SystemDiskWeightedIOTime,
}

// Spans lists every span, by type.
var Spans = []Span{
	EpochSpan,
	LoadSpan,
	RunSpan,
	StorageStallSpan,
	WindowSpan,
}

// Events lists every event, by name.
var Events = []Event{
	AgentDegradedEvent,
	DiskHealthEvent,
	DiskSaturatedEvent,
	GPUErrorEvent,
	GPULostEvent,
	GPUTemperatureHighEvent,
	GPUThrottledEvent,
	IOStormEvent,
	WindowSlowEvent,
}
