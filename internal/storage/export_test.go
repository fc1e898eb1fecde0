package storage

import (
	"testing"
	"time"
)

// TellOften makes the lines of the log about what lasts come at every tick of
// this length, for the rest of the test.
func TellOften(t testing.TB, tick time.Duration) {
	before := often
	often = tick
	t.Cleanup(func() { often = before })
}
