-- Edits: where a person gave a row another body, each with the body before it. An edit goes
-- with its row, and its body with the row's.
create table {prefix}edits (
  "row" bigint not null references {prefix}inbox (number) on delete cascade,
  number bigint not null,
  at timestamptz not null,
  who text not null,
  body bytea,
  body_sum bytea not null,
  body_size bigint not null,
  sum bytea not null,
  size bigint not null,
  primary key ("row", number)
);
