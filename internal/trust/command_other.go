//go:build !linux

package trust

// Launch starts the program. Only Linux has these rights.
func (c *Command) Launch(Rights) error { return c.Start() }

// Await waits for the program.
func (c *Command) Await() error {
	defer c.finished()
	return c.Wait()
}
