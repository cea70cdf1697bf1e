package helper

import "time"

// Delays between the end of a helper and the start of the next.
const (
	firstDelay = time.Second
	maxDelay   = time.Minute
	// healthy is how long a helper has to run for the next delay to be the first again.
	healthy = 10 * time.Minute
)

// said is for a helper that has sent the agent the reason itself.
const said = "said"

// keep runs helpers, one after the other, until the process ends. run starts one, and returns why that failed, or when
// it has ended. report informs the agent.
func keep(run func() (why string), report func(why string)) {
	delay := firstDelay
	for {
		began := time.Now()
		if why := run(); why != said {
			report(why)
		}
		if time.Since(began) >= healthy {
			delay = firstDelay
		}
		time.Sleep(delay)
		delay = min(2*delay, maxDelay)
	}
}
