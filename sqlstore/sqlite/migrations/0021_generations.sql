-- Generations: which of a consumer's is the one that it works in, and until when nobody may
-- work in one.
create table {prefix}generation_states (
  consumer blob not null,
  generation integer not null,
  state integer not null,
  since integer not null,
  fenced_until integer,
  opened_at integer not null,
  opened_by text not null,
  why text not null,
  primary key (consumer, generation)
);

create unique index {prefix}generation_states_one on {prefix}generation_states (consumer, state) where state in (1, 2);

create table {prefix}generation_fences (
  consumer blob not null,
  generation integer not null,
  until integer not null,
  primary key (consumer, generation)
);

create view {prefix}generations as
select cast(consumer as text) as consumer, generation as active, since
from {prefix}generation_states where state = 2;
