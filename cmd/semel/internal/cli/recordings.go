package cli

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// recordingKind is what a recording was written for. It ends the name of its file, and each
// kind is counted by itself: who asks often displaces no recording of a broken law.
type recordingKind string

// The kinds.
const (
	ofPerson recordingKind = ".recording"
	ofLaw    recordingKind = "-law.recording"
)

const (
	// mostKept is how many recordings of a consumer and a kind are kept.
	mostKept = 10
	// stampForm is the time in a file's name, so that names sort by it.
	stampForm = "20060102T150405.000000Z"
)

func (k recordingKind) file(consumer string, at time.Time) string {
	return url.PathEscape(consumer) + "-" + at.UTC().Format(stampForm) + string(k)
}

// prune removes recordings of a consumer that are too many, the oldest first, but never the one
// that was just written, whatever the clock says; of those of laws not the first one either,
// which shows how it began. Files that have other names are left alone.
func (k recordingKind) prune(folder, consumer, written string) error {
	all, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range all {
		stamp, ours := strings.CutPrefix(f.Name(), url.PathEscape(consumer)+"-")
		stamp, ends := strings.CutSuffix(stamp, string(k))
		if _, err := time.Parse(stampForm, stamp); ours && ends && err == nil && f.Type().IsRegular() && f.Name() != written {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	if k == ofLaw && len(names) > 0 {
		names = names[1:]
	}
	var failed []error
	for _, name := range names[:max(0, len(names)-k.others())] {
		if err := os.Remove(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) { // another process may prune, too
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// others are those that are kept beside the one that was just written, and beside the first of
// laws.
func (k recordingKind) others() int {
	if k == ofLaw {
		return mostKept - 2
	}
	return mostKept - 1
}
