create table orders (id text, customer text, amount integer);
