package trust

import "testing"

func TestRights(t *testing.T) {
	const ptrace = uint64(sysPtrace)
	for name, test := range map[string]struct {
		r                    rights
		elevated, privileged bool
	}{
		"a user":                              {rights{uid: 1, euid: 1}, false, false},
		"root":                                {rights{permitted: ptrace}, false, false},
		"setuid":                              {rights{uid: 1, permitted: ptrace}, true, true},
		"setgid":                              {rights{uid: 1, euid: 1, egid: 5}, true, true},
		"file capabilities":                   {rights{uid: 1, euid: 1, permitted: ptrace}, true, true},
		"ambient capabilities":                {rights{uid: 1, euid: 1, permitted: ptrace, ambient: ptrace}, false, true},
		"another domain":                      {rights{uid: 1, euid: 1, secure: true}, false, true},
		"root started a file of another user": {rights{euid: 1}, true, true},
	} {
		if got := test.r.elevated(); got != test.elevated {
			t.Errorf("%s: got elevated %v, want %v", name, got, test.elevated)
		}
		if got := test.r.privileged(); got != test.privileged {
			t.Errorf("%s: got privileged %v, want %v", name, got, test.privileged)
		}
	}
}
