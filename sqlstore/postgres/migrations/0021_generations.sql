-- Generations: which of a consumer's is the one that it works in. A fence stands beside it, so
-- that nobody begins while those are waited for who hold the row.
create table {prefix}generation_states (
  consumer bytea not null,
  generation bigint not null,
  state smallint not null,
  since timestamptz not null,
  fenced_until timestamptz,
  opened_at timestamptz not null,
  opened_by text not null,
  why text not null,
  primary key (consumer, generation)
);

create unique index {name}generation_states_one on {prefix}generation_states (consumer, state) where state in (1, 2);

create table {prefix}generation_fences (
  consumer bytea not null,
  generation bigint not null,
  until timestamptz not null,
  primary key (consumer, generation)
);

create view {prefix}generations as
select {prefix}readable(consumer) as consumer, generation as active, since
from {prefix}generation_states where state = 2;
