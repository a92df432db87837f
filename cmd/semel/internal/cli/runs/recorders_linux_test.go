package runs

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestARecorderFindsAtTheStartThatItCannotWrite(t *testing.T) {
	// Nobody, not even root, can write in the folder of this test.
	err := newRecorders(&policy.Policy{Recorder: policy.Recorder{Folder: "/proc/self"}}, slog.New(slog.DiscardHandler)).check()
	if err == nil || !strings.Contains(err.Error(), "recorder.folder: ") || !strings.Contains(err.Error(), "/proc/self") {
		t.Error(err)
	}
}
