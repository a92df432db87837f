package semeltest

import (
	"testing"

	"github.com/semel-go/semel/internal/house/pages"
)

const page = "../docs/guides/testing.md"

func TestThePageShowsCodeThatIsCompiled(t *testing.T) {
	pages.Shows(t, page, 7, pages.Read(t, "example_test.go", "provider_example_test.go", "effects_example_test.go", "../itest/store/handlers/sqlx_test.go",
		"../itest/store/handlers/billing_test.go", "../itest/store/handlers/billing_sqlite_test.go", "../itest/store/handlers/killed_test.go"))
}
