package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/source"
)

func TestAWriterThatGoesOnAfterItsFileWasReplacedLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.jsonl")
	put := func(path, text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(path, "1\n2")
	s := Open(path, Options{Format: JSON, Follow: true})
	bound := source.Bound{Messages: 10, Bytes: 1 << 20}
	if got, err := s.Fetch(t.Context(), bound); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	put(path, "4\n")
	if again, err := s.atEnd(); !again || err != nil { // atEnd has found the new file, and no further bytes in the old file
		t.Fatal(again, err)
	}
	put(path+".1", "3\n")
	got, err := s.Fetch(t.Context(), bound)
	if err != nil || len(got) != 2 || string(got[0].Message.Body) != "23" || string(got[1].Message.Body) != "4" {
		t.Errorf("%d deliveries: %v", len(got), err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoPermissionIsAnErrorThatSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(path, Options{})
	s.openAs = func(name string) (*os.File, error) { // needed because the tests may run as root
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	_, err := s.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1})
	for _, err := range []error{err, s.Validate()} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "allow this user to read") || !strings.Contains(err.Error(), path) {
			t.Errorf("it says: %v", err)
		}
	}
}
