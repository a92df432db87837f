-- Controls: what operators want of a consumer, which each of its processes reads.
create table {prefix}controls (
  consumer blob primary key,
  paused integer not null,
  paused_by text not null,
  paused_why text not null,
  paused_at integer,
  per_second integer not null,
  limited_by text not null,
  limited_why text not null,
  limited_at integer
) without rowid;
