package identity

import "testing"

// Stores contain each of these texts. If a release wrote one of them differently, consumers would not start.
func TestTheDerivationOfAnIdentity(t *testing.T) {
	t.Run("A7_the_derivation_is_one_text_for_one_identity", func(t *testing.T) {
		for _, c := range []struct {
			by   *Selected
			want string
		}{
			{By("body:/id"), `id "body:/id"`},
			{By("body:/id").From("body:/shop"), `id "body:/id" source "body:/shop"`},
			{By("body:/id").From("const:shop"), `id "body:/id" source "const:shop"`},
			{By("body:/order", "body:/line"), `id "body:/order" "body:/line"`},
			{By("body:/line", "body:/order"), `id "body:/line" "body:/order"`},
			{By("header:Event-ID"), `id "header:event-id"`},
			{By("header:event-id").From("header:SHOP"), `id "header:event-id" source "header:shop"`},
			{By("body:/ID"), `id "body:/ID"`},
		} {
			if err := c.by.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := c.by.Derivation(); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		}
	})
}
