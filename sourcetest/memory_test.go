package sourcetest_test

import (
	"testing"

	"github.com/semel-go/semel/sourcetest"
)

func allOf(lanes int) sourcetest.Can {
	return sourcetest.Can{
		Lanes: lanes, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
		HandsBack: true, Delays: true, Counts: true, Pauses: true, Ends: true,
	}
}

func TestMemoryKeepsTheLaws(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(testing.TB) sourcetest.Broker { return sourcetest.NewMemory(3) },
		Can:   allOf(3), Virtual: true,
	})
}
