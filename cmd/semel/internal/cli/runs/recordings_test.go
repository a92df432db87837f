package runs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestRecordingsAreBounded(t *testing.T) {
	began := time.Date(2026, 1, 7, 9, 30, 0, 0, time.UTC)
	folder := t.TempDir()
	add := func(name string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	there := func() (names []string) {
		t.Helper()
		all, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			names = append(names, f.Name())
		}
		return names
	}
	others := []string{add(manualRecording.file("billing-b", began)), add("billing-notes.recording"), add("billing-" + began.Format(stampForm) + ".txt"), add("notes")}
	want := others
	for _, k := range []recordingKind{manualRecording, violationRecording} {
		var names []string
		for n := range 3 * mostKept {
			names = append(names, add(k.file("billing", began.Add(time.Duration(n)*time.Second))))
			if err := k.prune(folder, "billing", names[n]); err != nil {
				t.Fatal(err)
			}
		}
		kept := names[2*mostKept:]
		if k == violationRecording {
			kept = append([]string{names[0]}, kept[1:]...)
		}
		want = append(want, kept...)
	}
	slices.Sort(want)
	if got := there(); !slices.Equal(got, want) {
		t.Errorf("there are\n%q\nwant\n%q", got, want)
	}
	t.Run("the_one_that_was_just_written_stays_also_where_the_clock_was_set_back", func(t *testing.T) {
		written := add(manualRecording.file("billing", began.Add(-time.Hour)))
		if err := manualRecording.prune(folder, "billing", written); err != nil {
			t.Fatal(err)
		}
		if got := there(); !slices.Contains(got, written) || len(got) != len(want) {
			t.Errorf("there are %q", got)
		}
	})
}
