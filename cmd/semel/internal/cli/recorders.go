package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
)

// recorders are the flight recorders of a run's consumers.
type recorders struct {
	policy policy.Recorder
	fault  func(path, reason, remedy string) policy.Fault
	log    *slog.Logger
	now    func() time.Time

	mutex sync.Mutex
	names []string
	all   map[string]*consumer.Recorder // guarded by mutex
}

func recordings(p *policy.Policy, log *slog.Logger) *recorders {
	return &recorders{fault: p.Fault, policy: p.Recorder, log: log, now: time.Now, all: map[string]*consumer.Recorder{}}
}

// check finds before anything is read that nothing could be written.
func (r *recorders) check() error {
	if r.policy.Folder == "" {
		return nil
	}
	if info, err := os.Stat(r.policy.Folder); err != nil || !info.IsDir() {
		return r.fault("recorder.folder", r.policy.Folder+" is no folder", "make it, or name another one")
	}
	f, err := os.CreateTemp(r.policy.Folder, ".semel-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return r.fault("recorder.folder", fmt.Sprintf("nothing can be written there: %v", err), "let this user write there, or name another folder")
	}
	return nil
}

// of gives each consumer its recorder; nil where nothing is recorded.
func (r *recorders) of() func(name string) *consumer.Recorder {
	if r.policy.Folder == "" {
		return nil
	}
	return func(name string) *consumer.Recorder {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.all[name] == nil {
			r.names = append(r.names, name)
			r.all[name] = &consumer.Recorder{Size: r.policy.Size, IDs: r.policy.IDs, Broken: func(law string) {
				r.said(r.writeOne(name, law+" is broken", ofLaw))
			}}
		}
		return r.all[name]
	}
}

func (r *recorders) recorder(name string) *consumer.Recorder {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.all[name]
}

var errNotRecorded = errors.New("nothing is recorded: give the policy a recorder, as recorder: {folder: recordings}, and start the run anew")

// write writes what is recorded of every consumer, each into a file of its own.
func (r *recorders) write(why string) (files []string, err error) {
	if r.policy.Folder == "" {
		return nil, errNotRecorded
	}
	r.mutex.Lock()
	names := append([]string(nil), r.names...)
	r.mutex.Unlock()
	for _, name := range names {
		file, failed := r.writeOne(name, why, ofPerson)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		files = append(files, file)
	}
	return files, err
}

// writeOne writes a recording under a name that is not there yet, and removes what there is
// too much of its kind then.
func (r *recorders) writeOne(name, why string, of recordingKind) (string, error) {
	file := filepath.Join(r.policy.Folder, of.file(name, r.now()))
	if whole, err := filepath.Abs(file); err == nil { // who reads the log may be elsewhere
		file = whole
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("no recording of %s is written: %w", name, err)
	}
	err = r.recorder(name).Write(f, why)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("no recording of %s is written: %w", name, err), os.Remove(file))
	}
	if err := of.prune(r.policy.Folder, name, filepath.Base(file)); err != nil {
		r.log.Error("recordings that are too many are not removed", "error", err)
	}
	return file, nil
}

func (r *recorders) said(file string, err error) {
	if err != nil {
		r.log.Error("the recording is not written", "error", err)
		return
	}
	r.log.Warn("a recording is written", "file", file)
}

// signalled writes and tells what a signal asked for.
func (r *recorders) signalled() {
	files, err := r.write("a signal asked for it")
	for _, file := range files {
		r.said(file, nil)
	}
	if err != nil {
		r.said("", err)
	}
}
