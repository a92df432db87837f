package httpkey

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// TestTheFirstAPIPrintsWhatThePageShows builds the program of docs/start/http-api.md and sends the requests
// of the page. Only the port differs. The test kills the program after each request.
func TestTheFirstAPIPrintsWhatThePageShows(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	program, commands, printed := firstAPI(t)
	address := must.Get(proof.FreeAddress())(t)
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "api")
	must.OK(t, os.WriteFile(source, []byte(strings.Replace(program, "localhost:8080", address, 1)), 0o644))
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all strings.Builder
	for _, command := range commands {
		api := &process{Cmd: exec.CommandContext(ctx, binary), log: &bytes.Buffer{}}
		api.Dir, api.Stderr = folder, api.log
		must.OK(t, api.Start())
		waitListening(ctx, t, address, api)
		text, err := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer("curl", "curl -s", "localhost:8080", address).Replace(command)).Output()
		api.kill()
		if err != nil {
			t.Fatalf("%s: %v; its log:\n%s", command, err, api.log)
		}
		all.Write(text)
	}
	if all.String() != printed {
		t.Errorf("it prints\n%s\nand the page shows\n%s", &all, printed)
	}
}

// waitListening waits until a server listens at the address.
func waitListening(ctx context.Context, t *testing.T, address string, p *process) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if processes.Pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
			t.Fatalf("it does not listen; its log:\n%s", p.log)
		}
	}
}

// firstAPI returns the program of the page, the commands, and their output.
func firstAPI(t *testing.T) (program string, commands []string, printed string) {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/start/http-api.md"))(t)
	_, section, _ := strings.Cut(string(text), "## The program\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```")
	if len(blocks) != 7 {
		t.Fatalf("the section has %d blocks, want a program, commands and an output", len(blocks)/2)
	}
	program, _ = strings.CutPrefix(blocks[1], "go\n")
	shell, _ := strings.CutPrefix(blocks[3], "sh\n")
	if !strings.Contains(program, "// 10: ") || strings.Contains(program, "// 11") {
		t.Error("it has not ten marked lines")
	}
	return program, strings.Split(strings.TrimSpace(shell), "\n"), strings.TrimPrefix(blocks[5], "\n")
}
