package identity

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/google/uuid"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// place is what the cgroups of a process say. Empty fields are unknown.
//
// Only root makes cgroups, except in the parts of the tree that are given away: below user@UID.service to that user,
// below a service to the service, below a container to its programs, and below any folder that root does not own.
// There, any program could name a cgroup like a pod or a job of Slurm. So nothing is read below a container. Below a
// service only a container counts, and below user@UID.service a container and a unit. Where root does not own the
// folders, these are that user's claims. Of nested containers, the outer one counts.
type place struct {
	pod       string // its UID
	container string // 64 hexadecimal digits
	own       bool   // root does not own the container's cgroup
	job, step string // of Slurm
	sluid     string // of Slurm 26.05 and later: what it names the job's cgroup by, in place of its number
	stepd     string // the cgroup of the step's slurmstepd, if root alone can add processes; it knows the number
	unit      string // of systemd: x.service or x.scope
	userUnit  string // of the user's own systemd
}

// maxDepth bounds a path: the kernel permits any depth, and deeper cgroups belong to the job.
const maxDepth = 32

// placeOf parses /proc/PID/cgroup (cgroups(7)). Cgroup v2 comes first, and hierarchies of v1 fill in what it lacks: on
// hybrid systems, container managers and Slurm use these. own is cgroup.View.Own, and ofRoot is cgroup.View.OfRoot.
func placeOf(text []byte, own string, ofRoot func(controllers, group string) (folders int, ok bool)) (p place) {
	for _, second := range []bool{true, false} {
		for line := range bytes.Lines(text) {
			number, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
			controllers, path, _ := strings.Cut(rest, ":")
			if v2 := number == "0" && controllers == ""; v2 != second || !strings.HasPrefix(path, "/") {
				continue
			} else if v2 {
				path = cgroup.Join(own, path)
			}
			folders, visible := ofRoot(controllers, path)
			if !visible {
				folders = maxDepth
			}
			p.fill(parsePath(path, folders))
		}
	}
	return p
}

// fill adds what another hierarchy says.
func (p *place) fill(other place) {
	if p.pod == "" && (p.container == "" || p.container == other.container) {
		p.pod = other.pod
	}
	if other.container != "" && (p.container == "" || p.own && !other.own) {
		p.container, p.own = other.container, other.own
	}
	if p.job == "" && p.sluid == "" {
		p.job, p.step, p.sluid, p.stepd = other.job, other.step, other.sluid, other.stepd
	}
	if p.unit == "" {
		p.unit = other.unit
	}
	if p.userUnit == "" && p.unit == other.unit {
		p.userUnit = other.userUnit
	}
}

// parsePath parses the path of one cgroup, from the top, where so many folders are root's.
func parsePath(path string, folders int) (p place) {
	var kubelet, slurm, users bool // what the folders above are of
	above, depth := "", 0
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if depth++; depth > maxDepth || name == ".." {
			return p
		}
		users = users || depth-1 > folders
		given := p.unit != "" || users // to a service or a user
		kubelet = kubelet || !given && strings.Contains(name, "kubepods")
		switch id := locate.ContainerID(name); {
		case id != "":
			if !given || p.unit == above && isRuntime(above) {
				p.pod = cmp.Or(p.pod, podInSlice(name))
			}
			p.container, p.own = id, users || depth > folders
			return p
		case isManager(p.unit) && p.userUnit == "" && isUnit(name):
			p.userUnit = name
		case given:
		case kubelet && p.pod == "" && podOf(name) != "":
			p.pod = podOf(name)
		case isSlurm(name, depth):
			slurm = true
		case slurm:
			if p.slurm(name); p.sluid != "" && p.step != "" && p.stepd == "" && depth <= folders {
				p.stepd = strings.Join(strings.Split(path, "/")[:depth+1], "/") + "/slurm"
			}
		case isUnit(name):
			p.unit, users = name, isManager(name)
		}
		above = name
	}
	return p
}

// isRuntime reports whether a service runs containers for the kubelet. Where kubelet and containerd disagree about the
// driver of cgroups, containers are below the latter.
func isRuntime(unit string) bool { return unit == "containerd.service" || unit == "crio.service" }

// isUnit reports whether a cgroup is that of a service or a scope of systemd.
func isUnit(name string) bool {
	return strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope")
}

// isManager reports whether a unit is the systemd of a user, who owns the cgroups below.
func isManager(unit string) bool {
	return strings.HasPrefix(unit, "user@") && strings.HasSuffix(unit, ".service")
}

// podOf returns the UID of a pod in the name of its cgroup, as the kubelet names it with its drivers "systemd" and
// "cgroupfs":
//
//	kubepods-burstable-pod7b6f3ad1_1c2e_4e0a_9d53_0a4e5d1f9b11.slice
//	pod7b6f3ad1-1c2e-4e0a-9d53-0a4e5d1f9b11
//
// The UID of a static pod is a hash of 32 digits.
func podOf(name string) string {
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		at := strings.LastIndex(slice, "-pod")
		if at < 0 || !strings.Contains(slice[:at], "kubepods") {
			return ""
		}
		return podUID(strings.ReplaceAll(slice[at+len("-pod"):], "_", "-"))
	}
	uid, ok := strings.CutPrefix(name, "pod")
	if !ok {
		return ""
	}
	return podUID(uid)
}

// podInSlice returns the UID of a pod in kubepods-burstable-pod<uid>.slice:cri-containerd:<id>.
func podInSlice(name string) string {
	slice, _, ok := strings.Cut(name, ":")
	if !ok {
		return ""
	}
	return podOf(slice)
}

// podUID returns text if it has the form of a pod's UID.
func podUID(text string) string {
	const short, long = 32, 36 // without and with hyphens
	if len(text) != short && len(text) != long || uuid.Validate(text) != nil || text != strings.ToLower(text) {
		return ""
	}
	return text
}

// isSlurm reports whether a cgroup has those of Slurm's jobs: slurmstepd.scope or NODE_slurmstepd.scope (v2), or slurm
// or slurm_NODE at the top (v1).
func isSlurm(name string, depth int) bool {
	return name == "slurmstepd.scope" || strings.HasSuffix(name, "_slurmstepd.scope") ||
		depth == 1 && (name == "slurm" || strings.HasPrefix(name, "slurm_"))
}

// slurm reads job_5, or the SLUID of a job, and, below it, step_0, step_0+1 (of a heterogeneous job), step_batch,
// step_extern or step_interactive.
func (p *place) slurm(name string) {
	known := p.job != "" || p.sluid != ""
	if number, ok := strings.CutPrefix(name, "job_"); ok && !known && isNumber(number) {
		p.job = number
	}
	if !known && isSLUID(name) {
		p.sluid = name
	}
	if step, ok := strings.CutPrefix(name, "step_"); ok && known && p.step == "" && isStep(step) {
		p.step = step
	}
}

// isSLUID reports whether text is a SLUID: s and 64 bits in Crockford's base 32.
func isSLUID(text string) bool {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	return len(text) == 14 && text[0] == 's' && strings.Trim(text[1:], digits) == ""
}

// jobInTitle returns the number of the job in the title of a slurmstepd, such as "slurmstepd: [5.0]", or "".
func jobInTitle(title string) string {
	rest, _ := strings.CutPrefix(title, "slurmstepd: [")
	job, _, ok := strings.Cut(rest, ".")
	if !ok || rest == title {
		return ""
	}
	return number(job)
}

// isNumber reports whether text is a number of up to ten digits.
func isNumber(text string) bool {
	return text != "" && len(text) <= 10 && strings.Trim(text, "0123456789") == ""
}

func isStep(text string) bool {
	step, part, several := strings.Cut(text, "+")
	return isNumber(step) && (!several || isNumber(part)) || text == "batch" || text == "extern" || text == "interactive"
}
