package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

func TestATerminalShowsTheHighestCount(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	terminal := must.Get(openTerminal(log))(t)
	fmt.Fprint(terminal.end, "counter  9/s  behind 3  deliver")
	fmt.Fprint(terminal.end, "ies 41  applied 40\ncounter  9/s  deliveries 57  applied 40\n")
	terminal.closeProcessEnd()
	terminal.wait()
	if got := terminal.shownDeliveries(); got != 57 {
		t.Errorf("it shows %d deliveries, not 57", got)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "behind 3") {
		t.Errorf("the log says %q, %v", text, err)
	}
}
