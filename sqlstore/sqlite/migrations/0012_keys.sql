-- Leased keys: calls outside of the database, by whom and until when, and how they ended.
-- key is a hash of consumer, source and id. Times are in microseconds.
create table {prefix}keys (
  key blob primary key,
  consumer blob not null,
  source blob not null,
  id blob not null,
  ended integer not null,
  token integer not null,
  first_at integer not null,
  locked_until integer not null,
  kept_until integer not null,
  started integer not null,
  finished integer not null,
  version integer not null,
  sum blob,
  result blob
) without rowid;
create index {prefix}keys_kept on {prefix}keys (kept_until);
