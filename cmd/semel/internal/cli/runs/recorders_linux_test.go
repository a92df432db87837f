package runs

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestARecorderFindsAtTheStartThatItCannotWrite(t *testing.T) {
	// Nobody can write in this folder, not even root.
	err := recordings(&policy.Policy{Recorder: policy.Recorder{Folder: "/proc/self"}}, slog.New(slog.DiscardHandler)).check()
	if err == nil || !strings.Contains(err.Error(), "recorder.folder: ") || !strings.Contains(err.Error(), "/proc/self") {
		t.Error(err)
	}
}
