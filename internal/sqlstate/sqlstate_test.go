package sqlstate

import "testing"

func TestRolledBack(t *testing.T) {
	t.Run("trap_91_what_a_broken_server_or_a_pooler_says_of_a_commit_proves_nothing", func(t *testing.T) {
		for _, code := range []string{"23503", "23505", "40001", "40P01", "25P02", "57014", "53100", "P0001", "55P03"} {
			if !RolledBack(code) {
				t.Errorf("%s leaves the commit unknown", code)
			}
		}
		for _, code := range []string{"", "08006", "08007", "08P01", "40003", "57P01", "57P02", "57P03", "58030", "XX000", "XX001", "2350"} {
			if RolledBack(code) {
				t.Errorf("%q is taken for the end of the transaction", code)
			}
		}
	})
}
