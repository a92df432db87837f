-- How the identities of consumers are found, or were; each has scopes of its generation.
-- former is the generation of the one that was named as former when it was recorded.
create table {prefix}derivations (
  consumer bytea not null,
  generation bigint not null,
  derivation bytea not null,
  former bigint,
  retired boolean not null default false,
  first_at timestamptz not null,
  primary key (consumer, generation),
  unique (consumer, derivation)
);

-- What owns the name of a consumer.
create table {prefix}owners (
  consumer bytea primary key,
  owner bytea not null,
  changed_at timestamptz not null
);
