package progress

import "regexp"

// rankPrefix is what launchers put before each line of a rank: torchrun (--tee), srun (--label), mpirun (--tag-output)
// and Ray. A logger's "[rank 0]" is the same.
var rankPrefix = regexp.MustCompile(`^(?:\[[A-Za-z_]+ ?\d{1,6}\]: ?|\[(?i:rank|gpu|worker|process|node)[ _:-]?\d{1,6}\] ` +
	`|\[(?:\S{1,128}@)?\d{1,9},\d{1,6}\](?:<std(?:out|err)>)?: ?` +
	`|\s{0,5}\d{1,6}: |\(\w{1,64} pid=\d{1,9}(?:, ip=[^)]{1,64})?\) )`)

// barBehind is a bar whose description is a number: of an epoch, or of a rank.
var barBehind = regexp.MustCompile(`^ *\d{1,3}%\|`)

// cutRank divides a line into the prefix that names a rank, and the rest.
func cutRank(line []byte) (rank, rest []byte) {
	if len(line) > 0 && !digit(line[0]) && line[0] != '[' && line[0] != '(' && line[0] != ' ' {
		return nil, line
	}
	n := len(rankPrefix.Find(line))
	if bare := n > 0 && line[0] != '[' && line[0] != '('; bare && barBehind.Match(line[n:]) {
		n = 0
	}
	return line[:n], line[n:]
}

// maxUnheard is the number of lines of other ranks after which a silent rank is replaced.
const maxUnheard = 1000

// ranks chooses one rank of several that a launcher labels. Lines without a label are a rank, too.
type ranks struct {
	chosen  string
	known   bool
	unheard int // lines of other ranks since the chosen one's
}

// heard reports whether this rank's lines mark epochs.
func (r *ranks) heard(rank []byte) bool {
	if !r.known || string(rank) == r.chosen || r.unheard == maxUnheard {
		if string(rank) != r.chosen {
			r.chosen = string(rank)
		}
		r.known, r.unheard = true, 0
		return true
	}
	r.unheard++
	return false
}
