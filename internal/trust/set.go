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
	// Machine reads other users' processes, follows the scheduler and asks drives for their health.
	Machine = dacReadSearch | sysPtrace | bpf | perfMon | sysRawIO | sysAdmin
	// All is for commands that start programs of the user, which inherit it.
	All = ^None
)
