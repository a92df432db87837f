-- Edits: where a person gave a row another body, each with the body before it. An edit goes
-- with its row, and its body with the row's.
create table {prefix}edits (
  row integer not null references {prefix}inbox (number) on delete cascade,
  number integer not null,
  at integer not null,
  who text not null,
  body blob,
  body_sum blob not null,
  body_size integer not null,
  sum blob not null,
  size integer not null,
  primary key (row, number)
) without rowid;
