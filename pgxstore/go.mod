module github.com/semel-go/semel/pgxstore

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/semel-go/semel v0.0.0
)
