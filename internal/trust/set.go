package trust

// Set is a set of Linux capabilities, a bit for each.
type Set uint64

// Capabilities that commands of this program can use (capabilities(7)).
const (
	dacReadSearch Set = 1 << 2
	sysRawIO      Set = 1 << 17
	sysPtrace     Set = 1 << 19
	sysAdmin      Set = 1 << 21
	perfMon       Set = 1 << 38
	bpf           Set = 1 << 39

	// None is for commands that read files of the user or talk to a socket.
	None Set = 0
	// Processes reads the I/O of other users' processes.
	Processes = dacReadSearch | sysPtrace
	// Schedule follows the scheduler.
	Schedule = bpf | perfMon
	// Drives asks drives for their health.
	Drives = sysRawIO | sysAdmin
	// Machine reads other users' processes, follows the scheduler and asks drives for their health.
	Machine = Processes | Schedule | Drives
	// All is for commands that start programs of the user, which inherit it.
	All = ^None
)
