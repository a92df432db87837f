-- How the identities of consumers are found, or were; each has scopes of its generation.
-- former is the generation of the one that was named as former when it was recorded.
create table {prefix}derivations (
  consumer blob not null,
  generation integer not null,
  derivation blob not null,
  former integer,
  retired integer not null default 0,
  first_at integer not null,
  primary key (consumer, generation),
  unique (consumer, derivation)
) without rowid;

-- What owns the name of a consumer.
create table {prefix}owners (
  consumer blob primary key,
  owner blob not null,
  changed_at integer not null
) without rowid;
