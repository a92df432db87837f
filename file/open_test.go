package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestNoPermissionIsAnErrorThatSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(path, Options{})
	s.openAs = func(name string) (*os.File, error) { // the tests may run as root
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	_, err := s.Fetch(t.Context(), semel.Bound{Messages: 1, Bytes: 1})
	for _, err := range []error{err, s.Validate()} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "allow this user to read") || !strings.Contains(err.Error(), path) {
			t.Errorf("it says: %v", err)
		}
	}
}
