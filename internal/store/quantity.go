package store

// Kind is what a column is of.
type Kind string

const (
	Machine Kind = "machine"
	GPU     Kind = "gpu"
	Disk    Kind = "disk"
	Job     Kind = "job"
)

// Quantity is something of a kind that has a curve. A curve is of means, except those that say otherwise.
type Quantity struct {
	Of   Kind
	Name string  // with its unit, as in the heads of CSV
	Step float64 // values are stored as multiples of it
	Fold Fold    // how longer intervals are made
	By   string  // of a weighted mean: the quantity of the weights
}

// Fold is how the value of a longer interval follows from those of shorter ones.
type Fold uint8

const (
	Mean Fold = iota
	Min
	Max
	WeightedMean
)

// Names of quantities. Ratios are from 0 to 1.
const (
	Cores       = "busy_cores" // core-seconds of work, per second
	BusiestCore = "busiest_core_ratio"
	IOSome      = "io_some_ratio" // pressure
	IOFull      = "io_full_ratio"

	Busy          = "busy_ratio"
	BusyMin       = "busy_min_ratio"
	BusyMax       = "busy_max_ratio"
	SMActive      = "sm_active_ratio"
	TensorActive  = "tensor_active_ratio"
	Power         = "power_watts"
	PowerMax      = "power_max_watts"
	Temperature   = "temperature_celsius"
	MemoryUsed    = "memory_used_bytes"
	SMClock       = "sm_clock_hz"
	Throttled     = "throttled_ratio" // the sum over all reasons
	ReadBytes     = "read_bytes_per_s"
	ReadBytesMax  = "read_bytes_max_per_s"
	WriteBytes    = "write_bytes_per_s"
	WriteBytesMax = "write_bytes_max_per_s"
	Reads         = "reads_per_s"
	Writes        = "writes_per_s"
	ReadAwait     = "read_await_s"
	ReadAwaitMax  = "read_await_max_s"
	WriteAwait    = "write_await_s"
	WriteAwaitMax = "write_await_max_s"
	Queue         = "queue_depth"
	QueueMax      = "queue_depth_max"
	Utilization   = "utilization_ratio"

	Storage = "storage_ratio" // parts of the ledger of a job, or of the whole machine
	CPU     = "cpu_ratio"
)

const (
	thousandth = 1e-3
	kilobyte   = 1e3
)

// Quantities are all that are written, in the order of columns for people.
var Quantities = []Quantity{
	{Of: Machine, Name: Cores, Step: thousandth},
	{Of: Machine, Name: BusiestCore, Step: thousandth},
	{Of: Machine, Name: IOSome, Step: thousandth},
	{Of: Machine, Name: IOFull, Step: thousandth},
	{Of: Machine, Name: Storage, Step: thousandth},
	{Of: Machine, Name: CPU, Step: thousandth},
	{Of: GPU, Name: Busy, Step: thousandth},
	{Of: GPU, Name: BusyMin, Step: thousandth, Fold: Min},
	{Of: GPU, Name: BusyMax, Step: thousandth, Fold: Max},
	{Of: GPU, Name: SMActive, Step: thousandth},
	{Of: GPU, Name: TensorActive, Step: thousandth},
	{Of: GPU, Name: Power, Step: 0.1},
	{Of: GPU, Name: PowerMax, Step: 1, Fold: Max},
	{Of: GPU, Name: Temperature, Step: 0.1},
	{Of: GPU, Name: MemoryUsed, Step: 1 << 20},
	{Of: GPU, Name: SMClock, Step: 1e6},
	{Of: GPU, Name: Throttled, Step: thousandth},
	{Of: Disk, Name: ReadBytes, Step: kilobyte},
	{Of: Disk, Name: ReadBytesMax, Step: 1e2 * kilobyte, Fold: Max},
	{Of: Disk, Name: WriteBytes, Step: kilobyte},
	{Of: Disk, Name: WriteBytesMax, Step: 1e2 * kilobyte, Fold: Max},
	{Of: Disk, Name: Reads, Step: 0.1},
	{Of: Disk, Name: Writes, Step: 0.1},
	{Of: Disk, Name: ReadAwait, Step: 1e-6, Fold: WeightedMean, By: Reads},
	{Of: Disk, Name: ReadAwaitMax, Step: 1e-5, Fold: Max},
	{Of: Disk, Name: WriteAwait, Step: 1e-6, Fold: WeightedMean, By: Writes},
	{Of: Disk, Name: WriteAwaitMax, Step: 1e-5, Fold: Max},
	{Of: Disk, Name: Queue, Step: 0.01},
	{Of: Disk, Name: QueueMax, Step: 0.1, Fold: Max},
	{Of: Disk, Name: Utilization, Step: thousandth},
	{Of: Job, Name: Busy, Step: thousandth},
	{Of: Job, Name: Storage, Step: thousandth},
	{Of: Job, Name: CPU, Step: thousandth},
	{Of: Job, Name: Cores, Step: thousandth},
	{Of: Job, Name: ReadBytes, Step: kilobyte},
	{Of: Job, Name: WriteBytes, Step: kilobyte},
}
