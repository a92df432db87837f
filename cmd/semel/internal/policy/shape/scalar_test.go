package shape

import (
	"testing"
	"time"
)

func TestDurationsAndSizesNeedUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "30d": 30 * Day, "1d12h": 36 * time.Hour, "1.5s": 1500 * time.Millisecond,
		"106751d": 106751 * Day,
		"":        -1, "0": -1, "30": -1, "-1s": -1, "+1s": -1, "d": -1, "1.5d": -1, "1d-1s": -1, "1d5": -1, "106752d": -1, "106751d24h": -1, "3w": -1,
	} {
		if got, ok := ParseSpan(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
	for text, want := range map[string]int64{
		"0B": 0, "12B": 12, "2kB": 2000, "2KiB": 2048, "64MiB": 64 << 20, "3MB": 3e6, "1GiB": 1 << 30, "2GB": 2e9,
		"": -1, "12": -1, "B": -1, "1.5MiB": -1, "-1B": -1, "9223372036854775807GiB": -1, "1mb": -1,
	} {
		if got, ok := parseSize(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
}
