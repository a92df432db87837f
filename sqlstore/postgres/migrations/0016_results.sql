-- Results: what handlers made of messages, for those who ask again. A result goes with its
-- marker.
create table {prefix}results (
  scope bigint not null,
  id bytea not null,
  result bytea not null,
  primary key (scope, id)
);
