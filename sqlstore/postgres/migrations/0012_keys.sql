-- Leased keys: calls outside of the database, by whom and until when, and how they ended.
-- key is a hash of consumer, source and id, which an index could not hold.
create table {prefix}keys (
  key bytea primary key,
  consumer bytea not null,
  source bytea not null,
  id bytea not null,
  ended smallint not null,
  token bigint not null,
  first_at timestamptz not null,
  locked_until timestamptz not null,
  kept_until timestamptz not null,
  started bigint not null,
  finished bigint not null,
  version smallint not null,
  sum bytea,
  result bytea
);
create index on {prefix}keys (kept_until);
