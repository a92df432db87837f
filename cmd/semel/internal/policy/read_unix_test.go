//go:build unix

package policy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

func TestReadingAPolicyWaitsForNobodyAndHasAnEnd(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(folder, "closed")
	for path, want := range map[string]string{
		pipe:        "the file is empty",
		folder:      "it is a directory",
		closed:      "there is no such file",
		"/dev/null": "the file is empty",
		"/dev/zero": "it is longer than 16 MiB",
	} {
		p, faults := Load(path, os.LookupEnv)
		if p != nil || len(faults) != 1 || !strings.Contains(faults[0].String(), path+":1:1: ") || !strings.Contains(faults[0].String(), want) {
			t.Errorf("%s: %v, want %q", path, faults, want)
		}
	}
	t.Run("a_pipe_that_somebody_writes_is_read_to_its_end", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		if _, err := write.WriteString("version: 1\n"); err != nil {
			t.Fatal(err)
		}
		write.Close()
		data, err := shape.ReadFile("/dev/fd/" + strconv.Itoa(int(read.Fd())))
		if string(data) != "version: 1\n" || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	})
}
