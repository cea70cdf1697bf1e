package switches

import "errors"

// ErrOtherUser names no process, so that it is the same for all of them.
var ErrOtherUser = errors.New("processes of other users are not followed: " +
	"run as that user, as root, or with CAP_BPF and CAP_PERFMON")
