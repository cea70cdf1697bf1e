package helper

import "time"

// Delays between the end of a helper and the start of the next.
const (
	firstDelay = time.Second
	maxDelay   = time.Minute
	// healthy is how long a helper has to run for the next delay to be the first again.
	healthy = 10 * time.Minute
)

// keep runs helpers, one after the other, until one has found the agent gone. run starts one, and returns its exit
// status when it has ended. report informs the agent.
func keep(run func() (status int, err error), report func(status int) error) error {
	delay := firstDelay
	for {
		began := time.Now()
		status, err := run()
		if err != nil {
			return err
		}
		if status == exitDone {
			return nil
		}
		if err := report(status); err != nil {
			return err
		}
		if time.Since(began) >= healthy {
			delay = firstDelay
		}
		time.Sleep(delay)
		delay = min(2*delay, maxDelay)
	}
}
