package retention

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func TestTheSettingsOfATopic(t *testing.T) {
	usual := Settings{Policy: "delete", RetentionTime: "604800000", SegmentTime: "604800000", TimestampType: "CreateTime", TimestampAhead: "9223372036854775807"}
	const week = 7 * 24 * time.Hour
	for name, one := range map[string]struct {
		change Settings
		late   time.Duration // 0 means unlimited; a negative value means an error
		why    string
	}{
		"H1_defaults": {nil, 2*week + RemovalCheck, "topic t: retention.ms 7d + segment.ms 7d + 5m until the brokers remove it"},
		"H1_times_of_the_brokers_are_never_ahead":         {Settings{TimestampType: "LogAppendTime", TimestampAhead: "3600000"}, 2*week + RemovalCheck, ""},
		"H1_an_unlimited_segment":                         {Settings{SegmentTime: "9223372036854775807"}, 0, "topic t: segment.ms is 9223372036854775807"},
		"H1_a_sum_that_overflows":                         {Settings{RetentionTime: "9000000000000", SegmentTime: "9000000000000"}, 0, "topic t: segment.ms is 9000000000000"},
		"H1_an_empty_cleanup_policy":                      {Settings{Policy: ""}, 0, "topic t: cleanup.policy is "},
		"H1_brokers_that_keep_no_segments_count_as_usual": {Settings{SegmentTime: "-"}, 2*week + RemovalCheck, ""},
		"H1_a_retention_of_zero":                          {Settings{RetentionTime: "0"}, week + RemovalCheck, "topic t: segment.ms 7d + 5m until the brokers remove it"},
		"H1_tiered_storage_keeps_for_retention_in_all":    {Settings{"remote.storage.enable": "true", "local.retention.ms": "1000"}, 2*week + RemovalCheck, ""},
		"H1_a_retention_that_is_not_told":                 {Settings{RetentionTime: "-"}, -1, "retention.ms"},
		"H1_a_policy_that_is_not_told":                    {Settings{Policy: "-"}, -1, "cleanup.policy"},
		"H1_a_retention_that_is_no_number":                {Settings{RetentionTime: "7d"}, -1, "retention.ms=7d"},
	} {
		t.Run(name, func(t *testing.T) {
			s := maps.Clone(usual)
			maps.Copy(s, one.change)
			maps.DeleteFunc(s, func(_, value string) bool { return value == "-" })
			h, err := s.horizon("t")
			switch {
			case one.late < 0:
				if err == nil || !strings.Contains(err.Error(), one.why) || !strings.Contains(err.Error(), "topic t") {
					t.Errorf("the horizon is %+v, %v", h, err)
				}
			case err != nil || h.Unlimited != (one.late == 0) || h.Late != one.late || one.why != "" && h.Why != one.why:
				t.Errorf("the horizon is %+v, %v", h, err)
			}
		})
	}
}
