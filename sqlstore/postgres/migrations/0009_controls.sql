-- Controls: what operators want of a consumer, which each of its processes reads.
create table {prefix}controls (
  consumer bytea primary key,
  paused boolean not null,
  paused_by text not null,
  paused_why text not null,
  paused_at timestamptz,
  per_second bigint not null,
  limited_by text not null,
  limited_why text not null,
  limited_at timestamptz
);
