import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Extensions that indexes use. */
const extensions = [`CREATE EXTENSION IF NOT EXISTS btree_gin`, `CREATE EXTENSION IF NOT EXISTS pg_trgm`];

/** Tables, each with its indexes. */
const tables = [
  `CREATE TABLE accounts (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      "name" text NOT NULL,
      kind text NOT NULL,
      is_operator boolean DEFAULT false NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      disabled_at timestamptz(3),
      logins_epoch integer DEFAULT 0 NOT NULL,
      CONSTRAINT "PK_5a7a02c20412299d198e097a8fe" PRIMARY KEY (id),
      CONSTRAINT accounts_kind CHECK (kind IN ('user', 'organization'))
    )`,
  `CREATE UNIQUE INDEX accounts_name ON accounts (name)`,

  `CREATE TABLE api_keys (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      account_id uuid NOT NULL,
      "name" text NOT NULL,
      prefix text NOT NULL,
      "hash" bytea NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      last_used_at timestamptz(3),
      expires_at timestamptz(3),
      scopes text[],
      last_address text,
      replaced_by uuid,
      made_by uuid[] DEFAULT '{}'::uuid[] NOT NULL,
      CONSTRAINT "PK_5c8a79801b44bd27b79228e1dad" PRIMARY KEY (id)
    )`,
  `CREATE INDEX api_keys_account ON api_keys (account_id)`,
  `CREATE INDEX api_keys_expires ON api_keys (expires_at)`,
  `CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash)`,
  `CREATE INDEX api_keys_replaced_by ON api_keys (replaced_by) WHERE replaced_by IS NOT NULL`,

  `CREATE TABLE namespaces (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      "name" text NOT NULL,
      account_id uuid NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_35c142e0f0de70165cc1a74b2cb" PRIMARY KEY (id),
      CONSTRAINT namespaces_name CHECK (name ~ '^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$')
    )`,
  `CREATE INDEX namespaces_account ON namespaces (account_id)`,
  `CREATE UNIQUE INDEX namespaces_name_unique ON namespaces (name)`,

  `CREATE TABLE connections (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      namespace_id uuid NOT NULL,
      connection_id text NOT NULL,
      "name" text NOT NULL,
      mcp_url text,
      metadata jsonb DEFAULT '{}' NOT NULL,
      sealed_headers text,
      revision integer DEFAULT 1 NOT NULL,
      status_state text NOT NULL,
      status_message text,
      status_since timestamptz(3) DEFAULT now() NOT NULL,
      last_ok_at timestamptz(3),
      server_info jsonb,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      target_kind text DEFAULT 'url' NOT NULL,
      server_id uuid,
      server_name text,
      source jsonb,
      mock jsonb,
      sealed_query text,
      setup_epoch integer DEFAULT 1 NOT NULL,
      status_reason text DEFAULT 'never_called' NOT NULL,
      status_inputs jsonb,
      recording_until timestamptz(3),
      status_challenges jsonb,
      step_ups jsonb DEFAULT '[]' NOT NULL,
      status_seen_at timestamptz(3),
      next_check_at timestamptz(3),
      check_failures integer DEFAULT 0 NOT NULL,
      is_stateful boolean DEFAULT false NOT NULL,
      sealed_url text,
      mcp_url_hash text,
      tools jsonb,
      call_timeout_ms integer,
      CONSTRAINT "PK_0a1f844af3122354cbd487a8d03" PRIMARY KEY (id),
      CONSTRAINT connections_state CHECK (status_state IN ('connected', 'disconnected', 'auth_required', 'input_required', 'error')),
      CONSTRAINT connections_target_kind CHECK (target_kind IN ('url', 'server', 'source', 'uplink'))
    )`,
  `CREATE INDEX connections_due ON connections (next_check_at) WHERE next_check_at IS NOT NULL`,
  `CREATE UNIQUE INDEX connections_id ON connections (namespace_id, connection_id)`,
  `CREATE INDEX connections_mcp_url ON connections (namespace_id, mcp_url, seq)`,
  `CREATE INDEX connections_mcp_url_hash ON connections (namespace_id, mcp_url_hash)`,
  `CREATE INDEX connections_metadata ON connections USING gin (namespace_id, metadata jsonb_path_ops)`,
  `CREATE INDEX connections_name ON connections (namespace_id, name, seq)`,
  `CREATE INDEX connections_newest ON connections (namespace_id, seq)`,
  `CREATE INDEX connections_server ON connections (server_id, namespace_id, seq)`,
  `CREATE INDEX connections_shared ON connections (mcp_url) WHERE (next_check_at IS NOT NULL) AND (sealed_headers IS NULL) AND (target_kind = 'url')`,

  `CREATE TABLE servers (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      namespace_id uuid NOT NULL,
      "name" text NOT NULL,
      display_name text NOT NULL,
      description text DEFAULT '' NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      slug text NOT NULL,
      current_release_id uuid,
      current_type text,
      snapshot jsonb,
      scan_passed boolean,
      slug_changed_at timestamptz(3),
      homepage text,
      repository_url text,
      repo_owner text,
      repo_name text,
      backlink_url text,
      license text,
      icon_url text,
      unlisted boolean DEFAULT false NOT NULL,
      verified boolean DEFAULT false NOT NULL,
      use_count bigint DEFAULT '0' NOT NULL,
      popularity smallint DEFAULT '0' NOT NULL,
      search tsvector,
      search_names tsvector,
      search_words text,
      visibility text DEFAULT 'public' NOT NULL,
      CONSTRAINT "PK_c0947efd9f3db2dcc010164d20b" PRIMARY KEY (id),
      CONSTRAINT servers_name CHECK (name ~ '^([a-zA-Z0-9][a-zA-Z0-9_-]{2,38})?$'),
      CONSTRAINT servers_visibility CHECK (visibility IN ('public', 'private'))
    )`,
  `CREATE INDEX servers_exact_name ON servers (lower(name))`,
  `CREATE INDEX servers_exact_title ON servers (lower(display_name))`,
  `CREATE INDEX servers_listed ON servers (id) WHERE NOT unlisted`,
  `CREATE INDEX servers_popular ON servers (popularity, created_at, id) WHERE NOT unlisted`,
  `CREATE UNIQUE INDEX servers_qualified_name ON servers (namespace_id, lower(name))`,
  `CREATE INDEX servers_repository ON servers (repo_owner, repo_name)`,
  `CREATE INDEX servers_search ON servers USING gin (search)`,
  `CREATE INDEX servers_search_names ON servers USING gin (search_names)`,
  `CREATE INDEX servers_search_words ON servers USING gin (search_words gin_trgm_ops)`,
  `CREATE UNIQUE INDEX servers_slug ON servers (lower(slug))`,
  `CREATE INDEX servers_verified ON servers (popularity, created_at, id) WHERE ((NOT unlisted) AND verified)`,

  `CREATE TABLE releases (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      server_id uuid NOT NULL,
      "type" text NOT NULL,
      "status" text NOT NULL,
      "stage" text DEFAULT 'deploy' NOT NULL,
      attempt integer DEFAULT 1 NOT NULL,
      recoveries integer DEFAULT 0 NOT NULL,
      lease_holder uuid,
      lease_until timestamptz(3),
      "commit" text,
      commit_message text,
      branch text,
      upstream_url text,
      runtime text,
      config_schema json,
      server_card jsonb,
      hosting jsonb,
      sealed_scan_credentials text,
      snapshot jsonb,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      updated_at timestamptz(3) DEFAULT now() NOT NULL,
      sealed_upstream_url text,
      number integer NOT NULL,
      created_by uuid,
      CONSTRAINT "PK_6b6fc2599a5a281dd44a7d64016" PRIMARY KEY (id),
      CONSTRAINT releases_stage CHECK (stage IN ('deploy', 'scan', 'metadata', 'publish')),
      CONSTRAINT releases_status CHECK (status IN ('QUEUED', 'WORKING', 'SUCCESS', 'FAILURE', 'FAILURE_SCAN', 'INTERNAL_ERROR', 'AUTH_REQUIRED', 'AUTH_TIMEOUT', 'CANCELLED')),
      CONSTRAINT releases_type CHECK (type IN ('external_shttp', 'hosted_shttp', 'stdio'))
    )`,
  `CREATE INDEX releases_newest ON releases (server_id, seq)`,
  `CREATE UNIQUE INDEX releases_number ON releases (server_id, number)`,
  `CREATE INDEX releases_unfinished ON releases (lease_until) WHERE (status IN ('QUEUED', 'WORKING', 'AUTH_REQUIRED'))`,

  `CREATE TABLE release_artifacts (
      release_id uuid NOT NULL,
      kind text NOT NULL,
      "hash" text NOT NULL,
      bytes integer NOT NULL,
      CONSTRAINT "PK_b62a04a211823ec19634f8b79a1" PRIMARY KEY (release_id, kind),
      CONSTRAINT release_artifacts_kind CHECK (kind IN ('module', 'sourcemap', 'bundle'))
    )`,
  `CREATE INDEX release_artifacts_hash ON release_artifacts (hash)`,

  `CREATE TABLE blob_garbage (
      "hash" text NOT NULL,
      CONSTRAINT blob_garbage_pkey PRIMARY KEY (hash)
    )`,

  `CREATE TABLE release_logs (
      seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      release_id uuid NOT NULL,
      "stage" text NOT NULL,
      "level" text NOT NULL,
      message text NOT NULL,
      error text,
      created_at timestamptz(3) DEFAULT clock_timestamp() NOT NULL,
      CONSTRAINT "PK_a919ec7b911fd9479b90bedabfe" PRIMARY KEY (seq),
      CONSTRAINT release_logs_stage CHECK (stage IN ('deploy', 'scan', 'metadata', 'publish'))
    )`,
  `CREATE INDEX release_logs_release ON release_logs (release_id, seq)`,

  `CREATE TABLE server_icons (
      server_id uuid NOT NULL,
      source text NOT NULL,
      bytes bytea,
      content_type text,
      "hash" text,
      updated_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_31829430d62427a83f073354404" PRIMARY KEY (server_id),
      CONSTRAINT server_icons_source CHECK (source IN ('upload', 'upstream'))
    )`,

  `CREATE TABLE server_secrets (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      server_id uuid NOT NULL,
      "name" text NOT NULL,
      sealed_value text NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_d80d22b82c2be3b70050f0a822d" PRIMARY KEY (id)
    )`,
  `CREATE UNIQUE INDEX server_secrets_name ON server_secrets (server_id, name)`,

  `CREATE TABLE oauth_clients (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      issuer text NOT NULL,
      redirect_uri text NOT NULL,
      kind text NOT NULL,
      client_id text NOT NULL,
      sealed_secret text,
      auth_method text,
      secret_expires_at timestamptz(3),
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      owner_kind text,
      owner_id uuid,
      refused_at timestamptz(3),
      CONSTRAINT "PK_c4759172d3431bae6f04e678e0d" PRIMARY KEY (id),
      CONSTRAINT oauth_clients_given CHECK (((owner_kind IS NOT NULL) = (kind = 'given')) AND ((owner_id IS NOT NULL) = (kind = 'given'))),
      CONSTRAINT oauth_clients_kind CHECK (kind IN ('document', 'registered', 'given')),
      CONSTRAINT oauth_clients_owner_kind CHECK (owner_kind IN ('server', 'connection'))
    )`,
  `CREATE UNIQUE INDEX oauth_clients_issuer ON oauth_clients (issuer, redirect_uri) WHERE owner_id IS NULL`,
  `CREATE UNIQUE INDEX oauth_clients_owner ON oauth_clients (owner_kind, owner_id, issuer, redirect_uri) WHERE owner_id IS NOT NULL`,

  `CREATE TABLE pending_authorizations (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      owner_kind text NOT NULL,
      owner_id uuid NOT NULL,
      label text NOT NULL,
      upstream_url text NOT NULL,
      server jsonb NOT NULL,
      client_row_id uuid,
      resource text NOT NULL,
      scopes text,
      expires_at timestamptz(3) NOT NULL,
      started_at timestamptz(3),
      browser_hash bytea,
      state_hash bytea,
      sealed_verifier text,
      completed_at timestamptz(3),
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      resource_name text,
      account_id uuid,
      logins_epoch integer DEFAULT 0 NOT NULL,
      CONSTRAINT "PK_a362585d63351b5383ee26a1642" PRIMARY KEY (id),
      CONSTRAINT pending_authorizations_owner_kind CHECK (owner_kind IN ('server', 'connection'))
    )`,
  `CREATE INDEX pending_authorizations_client ON pending_authorizations (client_row_id)`,
  `CREATE INDEX pending_authorizations_expires ON pending_authorizations (expires_at)`,
  `CREATE INDEX pending_authorizations_owner ON pending_authorizations (owner_kind, owner_id)`,
  `CREATE UNIQUE INDEX pending_authorizations_state ON pending_authorizations (state_hash)`,

  `CREATE TABLE upstream_credentials (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      owner_kind text NOT NULL,
      owner_id uuid NOT NULL,
      upstream_url text NOT NULL,
      server jsonb NOT NULL,
      client_row_id uuid,
      resource text NOT NULL,
      scopes text,
      sealed_tokens text,
      expires_at timestamptz(3),
      due_at timestamptz(3),
      generation integer DEFAULT 1 NOT NULL,
      state text NOT NULL,
      refreshed_at timestamptz(3),
      failures integer DEFAULT 0 NOT NULL,
      retry_at timestamptz(3),
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_d4ec983d7bfd6fdbfd2d9d879fa" PRIMARY KEY (id),
      CONSTRAINT upstream_credentials_owner_kind CHECK (owner_kind IN ('server', 'connection')),
      CONSTRAINT upstream_credentials_state CHECK (state IN ('active', 'required'))
    )`,
  `CREATE INDEX upstream_credentials_client ON upstream_credentials (client_row_id)`,
  `CREATE INDEX upstream_credentials_due ON upstream_credentials (due_at)`,
  `CREATE UNIQUE INDEX upstream_credentials_owner ON upstream_credentials (owner_kind, owner_id)`,

  `CREATE TABLE skills (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      namespace_id uuid NOT NULL,
      slug text NOT NULL,
      "name" text NOT NULL,
      description text NOT NULL,
      prompt text NOT NULL,
      categories text[] DEFAULT '{}'::text[] NOT NULL,
      servers text[] DEFAULT '{}'::text[] NOT NULL,
      git_url text,
      git_source text,
      content_hash text NOT NULL,
      search tsvector,
      total_activations integer DEFAULT 0 NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      updated_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_0d3212120f4ecedf90864d7e298" PRIMARY KEY (id),
      CONSTRAINT skills_slug CHECK (slug ~ '^[a-z0-9-]{1,64}$')
    )`,
  `CREATE INDEX skills_categories ON skills USING gin (categories)`,
  `CREATE UNIQUE INDEX skills_git_source ON skills (git_source)`,
  `CREATE INDEX skills_newest ON skills (created_at, id)`,
  `CREATE UNIQUE INDEX skills_qualified_name ON skills (namespace_id, slug)`,
  `CREATE INDEX skills_search ON skills USING gin (search)`,
  `CREATE INDEX skills_typos ON skills USING gin ((((((slug || ' ') || name) || ' ') || description)) gin_trgm_ops)`,

  `CREATE TABLE skill_files (
      skill_id uuid NOT NULL,
      "path" text NOT NULL,
      content bytea NOT NULL,
      is_executable boolean NOT NULL,
      CONSTRAINT "PK_ad3ffb2fa28e5a0d4ec93908cd7" PRIMARY KEY (skill_id, path)
    )`,

  `CREATE TABLE uplink_tunnels (
      connection_id uuid NOT NULL,
      process_id uuid NOT NULL,
      tunnel bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      epoch bigint NOT NULL,
      CONSTRAINT "PK_f9495108ab2a4ef14b213910edc" PRIMARY KEY (connection_id)
    )`,
  `CREATE INDEX uplink_tunnels_process ON uplink_tunnels (process_id)`,

  `CREATE TABLE upstream_eras (
      endpoint text NOT NULL,
      kind text NOT NULL,
      reason text NOT NULL,
      learned_at timestamp with time zone NOT NULL,
      expires_at timestamp with time zone NOT NULL,
      CONSTRAINT "PK_4be37d5c9a944567ed9fad55251" PRIMARY KEY (endpoint),
      CONSTRAINT upstream_eras_kind CHECK (kind IN ('modern', 'both', 'streamable', 'sse'))
    )`,
  `CREATE INDEX upstream_eras_expiry ON upstream_eras (expires_at)`,

  `CREATE TABLE connection_mocks (
      connection_id uuid NOT NULL,
      server jsonb NOT NULL,
      calls integer DEFAULT 0 NOT NULL,
      "uses" jsonb DEFAULT '{}' NOT NULL,
      CONSTRAINT "PK_3e34531f2ba145b506d7e4681f6" PRIMARY KEY (connection_id)
    )`,

  `CREATE TABLE mock_calls (
      connection_id uuid NOT NULL,
      seq integer NOT NULL,
      tool text NOT NULL,
      called_at timestamptz(3) DEFAULT now() NOT NULL,
      sealed text NOT NULL,
      CONSTRAINT "PK_c9f1822790c1f88af5ca59ce9ba" PRIMARY KEY (connection_id, seq)
    )`,

  `CREATE TABLE simulator_days (
      "day" date NOT NULL,
      namespace_id uuid NOT NULL,
      calls integer NOT NULL,
      CONSTRAINT "PK_6ca4717358223368dbd9a6d696c" PRIMARY KEY (day, namespace_id)
    )`,

  `CREATE TABLE recorded_calls (
      seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      connection_id uuid NOT NULL,
      tool text NOT NULL,
      sealed text NOT NULL,
      bytes integer NOT NULL,
      recorded_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT "PK_32480e3db4991095fc902c52716" PRIMARY KEY (seq)
    )`,
  `CREATE INDEX recorded_calls_age ON recorded_calls (recorded_at)`,
  `CREATE INDEX recorded_calls_order ON recorded_calls (connection_id, seq)`,

  `CREATE TABLE mock_replies (
      connection_id uuid NOT NULL,
      place integer NOT NULL,
      sealed text NOT NULL,
      CONSTRAINT "PK_d2e89a29a44d8f90c5d5f4981b3" PRIMARY KEY (connection_id, place)
    )`,

  `CREATE TABLE invocations (
      id uuid NOT NULL,
      server_id uuid,
      release_id uuid,
      at timestamptz(3) NOT NULL,
      "day" date NOT NULL,
      "status" integer,
      cpu_ms real,
      wall_ms real,
      left_out integer DEFAULT 0 NOT NULL,
      "method" text,
      url text,
      rpc_method text,
      tool_name text,
      outcome text,
      lines jsonb DEFAULT '[]' NOT NULL,
      exceptions jsonb DEFAULT '[]' NOT NULL,
      payload jsonb,
      search_text text DEFAULT '' NOT NULL,
      jobs integer[] NOT NULL,
      connection_id uuid,
      call jsonb,
      caller_account uuid,
      caller_kind text,
      caller_id uuid,
      caller_client text,
      CONSTRAINT invocations_pk PRIMARY KEY (id, day),
      CONSTRAINT invocations_owner CHECK ((server_id IS NOT NULL) OR (connection_id IS NOT NULL))
    ) PARTITION BY RANGE (day)`,
  `CREATE INDEX invocations_newest ON ONLY invocations (server_id, id DESC)`,
  `CREATE INDEX invocations_newest_of_connection ON ONLY invocations (connection_id, id DESC) WHERE connection_id IS NOT NULL`,

  `CREATE TABLE tool_output_shapes (
      server_id uuid NOT NULL,
      tool_name text NOT NULL,
      week integer NOT NULL,
      samples integer NOT NULL,
      shape text NOT NULL,
      CONSTRAINT tool_output_shapes_pk PRIMARY KEY (server_id, tool_name, week)
    )`,
  `CREATE INDEX tool_output_shapes_week ON tool_output_shapes (week)`,

  `CREATE TABLE hosting_placements (
      owner_id uuid NOT NULL,
      host_id uuid,
      data_id uuid NOT NULL,
      epoch bigint,
      CONSTRAINT "PK_f43cffc28874ba639118e7286d9" PRIMARY KEY (owner_id)
    )`,
  `CREATE INDEX hosting_placements_host ON hosting_placements (host_id)`,

  `CREATE TABLE server_runtime (
      server_id uuid NOT NULL,
      egress_allow text[],
      log_payloads boolean DEFAULT false NOT NULL,
      CONSTRAINT server_runtime_pk PRIMARY KEY (server_id)
    )`,

  `CREATE TABLE release_contracts (
      seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      server_id uuid NOT NULL,
      release_id uuid NOT NULL,
      previous_release_id uuid,
      "hash" text NOT NULL,
      summary text NOT NULL,
      change_count integer NOT NULL,
      changes jsonb DEFAULT '[]' NOT NULL,
      at timestamptz(3) DEFAULT now() NOT NULL,
      found_by text DEFAULT 'release' NOT NULL,
      CONSTRAINT "PK_c9e0cb3a24234570cd0ecd8bcbb" PRIMARY KEY (seq),
      CONSTRAINT release_contracts_found_by CHECK (found_by IN ('release', 'rescan')),
      CONSTRAINT release_contracts_summary CHECK (summary IN ('none', 'compatible', 'risky', 'breaking'))
    )`,
  `CREATE INDEX release_contracts_newest ON release_contracts (server_id, seq)`,

  `CREATE TABLE server_rescans (
      server_id uuid NOT NULL,
      upstream_url text,
      next_at timestamptz(3),
      asked_at timestamptz(3),
      sealed_credentials text,
      holder uuid,
      failures integer DEFAULT 0 NOT NULL,
      told text,
      CONSTRAINT server_rescans_pk PRIMARY KEY (server_id)
    )`,
  `CREATE INDEX server_rescans_asked ON server_rescans (asked_at) WHERE asked_at IS NOT NULL`,
  `CREATE INDEX server_rescans_due ON server_rescans (next_at)`,
  `CREATE INDEX server_rescans_held ON server_rescans (holder) WHERE holder IS NOT NULL`,

  `CREATE TABLE deleted_invocation_owners (
      owner_id uuid NOT NULL,
      kind text NOT NULL,
      deleted_at timestamp with time zone DEFAULT now() NOT NULL,
      due_at timestamp with time zone DEFAULT now() NOT NULL,
      CONSTRAINT deleted_invocation_owners_pkey PRIMARY KEY (owner_id),
      CONSTRAINT deleted_invocation_owners_kind_check CHECK (kind IN ('server', 'connection'))
    )`,

  `CREATE TABLE processes (
      id uuid NOT NULL,
      roles text[] NOT NULL,
      address text,
      epoch bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
      details jsonb NOT NULL,
      lease_until timestamptz(3) NOT NULL,
      CONSTRAINT "PK_566885de50f7d20a6df306c12e6" PRIMARY KEY (id)
    )`,

  `CREATE TABLE account_limits (
      account_id uuid NOT NULL,
      "name" text NOT NULL,
      value bigint NOT NULL,
      CONSTRAINT account_limits_pkey PRIMARY KEY (account_id, name)
    )`,

  `CREATE TABLE account_log_days (
      account_id uuid NOT NULL,
      "day" date NOT NULL,
      bytes bigint NOT NULL,
      CONSTRAINT account_log_days_pkey PRIMARY KEY (account_id, day)
    )`,

  `CREATE TABLE invocation_hours (
      server_id uuid NOT NULL,
      hour integer NOT NULL,
      invocations integer NOT NULL,
      left_out integer DEFAULT 0 NOT NULL,
      CONSTRAINT invocation_hours_pkey PRIMARY KEY (server_id, hour)
    )`,

  `CREATE TABLE log_batches (
      id uuid NOT NULL,
      server_id uuid NOT NULL,
      account_id uuid NOT NULL,
      bytes integer NOT NULL,
      records integer NOT NULL,
      payload json NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT log_batches_pkey PRIMARY KEY (id)
    )`,
  `CREATE INDEX log_batches_server ON log_batches (server_id)`,

  `CREATE TABLE session_marks (
      session text NOT NULL,
      expires_at timestamptz NOT NULL,
      principal text DEFAULT '' NOT NULL,
      CONSTRAINT "PK_session_marks" PRIMARY KEY (session)
    )`,
  `CREATE INDEX session_marks_expiry ON session_marks (expires_at)`,
  `CREATE INDEX session_marks_principal ON session_marks (principal, expires_at, session)`,

  `CREATE TABLE mcp_tasks (
      task text NOT NULL,
      owner text NOT NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      CONSTRAINT "PK_mcp_tasks" PRIMARY KEY (task)
    )`,
  `CREATE INDEX mcp_tasks_expiry ON mcp_tasks (expires_at)`,
  `CREATE INDEX mcp_tasks_owner ON mcp_tasks (owner, created_at)`,

  `CREATE TABLE grants (
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      subject_id uuid NOT NULL,
      server_id uuid,
      connection_id uuid,
      "level" text NOT NULL,
      created_by uuid NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      CONSTRAINT grants_pkey PRIMARY KEY (id),
      CONSTRAINT grants_level CHECK (level IN ('call', 'manage')),
      CONSTRAINT grants_target CHECK (num_nonnulls(server_id, connection_id) = 1)
    )`,
  `CREATE UNIQUE INDEX grants_connection ON grants (connection_id, subject_id)`,
  `CREATE UNIQUE INDEX grants_server ON grants (server_id, subject_id)`,
  `CREATE INDEX grants_subject ON grants (subject_id)`,

  `CREATE TABLE people (
      account_id uuid NOT NULL,
      password_hash text,
      password_at timestamptz(3),
      CONSTRAINT people_pkey PRIMARY KEY (account_id)
    )`,

  `CREATE TABLE sessions (
      "hash" bytea NOT NULL,
      id uuid DEFAULT gen_random_uuid() NOT NULL,
      account_id uuid NOT NULL,
      key_id uuid,
      address text NOT NULL,
      agent text NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      last_used_at timestamptz(3) DEFAULT now() NOT NULL,
      expires_at timestamptz(3) NOT NULL,
      CONSTRAINT sessions_pkey PRIMARY KEY (hash)
    )`,
  `CREATE INDEX sessions_account ON sessions (account_id)`,
  `CREATE INDEX sessions_expires ON sessions (expires_at)`,
  `CREATE UNIQUE INDEX sessions_id ON sessions (id)`,
  `CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL`,

  `CREATE TABLE invitations (
      "hash" bytea NOT NULL,
      account_id uuid NOT NULL,
      created_by uuid NOT NULL,
      expires_at timestamptz(3) NOT NULL,
      used_at timestamptz(3),
      CONSTRAINT invitations_pkey PRIMARY KEY (hash)
    )`,
  `CREATE INDEX invitations_account ON invitations (account_id)`,

  `CREATE TABLE as_clients (
      id text NOT NULL,
      sealed text,
      document text,
      address text,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      first_used_at timestamptz(3),
      last_used_at timestamptz(3),
      CONSTRAINT as_clients_pkey PRIMARY KEY (id),
      CONSTRAINT as_clients_source CHECK (num_nonnulls(sealed, document) = 1)
    )`,
  `CREATE INDEX as_clients_unfinished ON as_clients (created_at) WHERE first_used_at IS NULL`,

  `CREATE TABLE as_grants (
      id uuid NOT NULL,
      account_id uuid NOT NULL,
      client_id text NOT NULL,
      client_name text NOT NULL,
      client_host text,
      redirect_key text NOT NULL,
      redirects_hash bytea NOT NULL,
      resource text NOT NULL,
      connection_id uuid,
      namespace_id uuid,
      server_id uuid,
      is_remembered boolean DEFAULT false NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      last_used_at timestamptz(3),
      expires_at timestamptz(3) NOT NULL,
      address text,
      logins_epoch integer DEFAULT 0 NOT NULL,
      key_id uuid,
      right_id uuid,
      CONSTRAINT as_grants_pkey PRIMARY KEY (id),
      CONSTRAINT as_grants_target CHECK (num_nonnulls(connection_id, namespace_id, server_id) = 1)
    )`,
  `CREATE INDEX as_grants_account ON as_grants (account_id, created_at)`,
  `CREATE INDEX as_grants_connection ON as_grants (connection_id) WHERE connection_id IS NOT NULL`,
  `CREATE INDEX as_grants_key ON as_grants (key_id) WHERE key_id IS NOT NULL`,
  `CREATE INDEX as_grants_namespace ON as_grants (namespace_id) WHERE namespace_id IS NOT NULL`,
  `CREATE INDEX as_grants_right ON as_grants (right_id) WHERE right_id IS NOT NULL`,
  `CREATE INDEX as_grants_server ON as_grants (server_id) WHERE server_id IS NOT NULL`,

  `CREATE TABLE as_records (
      kind text NOT NULL,
      id_hash bytea NOT NULL,
      grant_id uuid,
      sealed text NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      consumed_at timestamptz(3),
      grace_until timestamptz(3),
      expires_at timestamptz(3) NOT NULL,
      predecessor bytea,
      address text,
      client_id text,
      CONSTRAINT as_records_pk PRIMARY KEY (kind, id_hash)
    )`,
  `CREATE INDEX as_records_begun ON as_records (address, client_id, created_at) WHERE kind = 'Interaction'`,
  `CREATE INDEX as_records_expires ON as_records (expires_at)`,
  `CREATE INDEX as_records_grant ON as_records (grant_id) WHERE grant_id IS NOT NULL`,
  `CREATE INDEX as_records_interactions ON as_records (created_at) WHERE kind = 'Interaction'`,
];

/** After all tables. */
const foreignKeys = [
  `ALTER TABLE api_keys ADD CONSTRAINT api_keys_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE namespaces ADD CONSTRAINT namespaces_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE RESTRICT`,
  `ALTER TABLE connections ADD CONSTRAINT connections_namespace_fk FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE`,
  `ALTER TABLE connections ADD CONSTRAINT connections_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE SET NULL`,
  `ALTER TABLE servers ADD CONSTRAINT servers_namespace_fk FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE RESTRICT`,
  `ALTER TABLE releases ADD CONSTRAINT releases_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE release_artifacts ADD CONSTRAINT release_artifacts_release_fk FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE`,
  `ALTER TABLE release_logs ADD CONSTRAINT release_logs_release_fk FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE`,
  `ALTER TABLE server_icons ADD CONSTRAINT server_icons_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE server_secrets ADD CONSTRAINT server_secrets_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE pending_authorizations ADD CONSTRAINT pending_authorizations_client_fk FOREIGN KEY (client_row_id) REFERENCES oauth_clients(id) ON DELETE CASCADE`,
  `ALTER TABLE upstream_credentials ADD CONSTRAINT upstream_credentials_client_fk FOREIGN KEY (client_row_id) REFERENCES oauth_clients(id) ON DELETE SET NULL`,
  `ALTER TABLE skills ADD CONSTRAINT skills_namespace_fk FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE`,
  `ALTER TABLE skill_files ADD CONSTRAINT skill_files_skill_fk FOREIGN KEY (skill_id) REFERENCES skills(id) ON DELETE CASCADE`,
  `ALTER TABLE uplink_tunnels ADD CONSTRAINT uplink_tunnels_connection_fk FOREIGN KEY (connection_id) REFERENCES connections(id) ON DELETE CASCADE`,
  `ALTER TABLE connection_mocks ADD CONSTRAINT connection_mocks_connection_fk FOREIGN KEY (connection_id) REFERENCES connections(id) ON DELETE CASCADE`,
  `ALTER TABLE mock_calls ADD CONSTRAINT mock_calls_mock_fk FOREIGN KEY (connection_id) REFERENCES connection_mocks(connection_id) ON DELETE CASCADE`,
  `ALTER TABLE recorded_calls ADD CONSTRAINT recorded_calls_connection_fk FOREIGN KEY (connection_id) REFERENCES connections(id) ON DELETE CASCADE`,
  `ALTER TABLE mock_replies ADD CONSTRAINT mock_replies_mock_fk FOREIGN KEY (connection_id) REFERENCES connection_mocks(connection_id) ON DELETE CASCADE`,
  `ALTER TABLE tool_output_shapes ADD CONSTRAINT tool_output_shapes_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE server_runtime ADD CONSTRAINT server_runtime_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE release_contracts ADD CONSTRAINT release_contracts_release_fk FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE`,
  `ALTER TABLE release_contracts ADD CONSTRAINT release_contracts_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE server_rescans ADD CONSTRAINT server_rescans_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE account_limits ADD CONSTRAINT account_limits_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE account_log_days ADD CONSTRAINT account_log_days_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE api_keys ADD CONSTRAINT api_keys_replaced_by_fk FOREIGN KEY (replaced_by) REFERENCES api_keys(id) ON DELETE SET NULL`,
  `ALTER TABLE log_batches ADD CONSTRAINT log_batches_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE grants ADD CONSTRAINT grants_subject_fk FOREIGN KEY (subject_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE grants ADD CONSTRAINT grants_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE grants ADD CONSTRAINT grants_connection_fk FOREIGN KEY (connection_id) REFERENCES connections(id) ON DELETE CASCADE`,
  `ALTER TABLE people ADD CONSTRAINT people_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE sessions ADD CONSTRAINT sessions_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE sessions ADD CONSTRAINT sessions_key_fk FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE`,
  `ALTER TABLE invitations ADD CONSTRAINT invitations_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_connection_fk FOREIGN KEY (connection_id) REFERENCES connections(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_namespace_fk FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_server_fk FOREIGN KEY (server_id) REFERENCES servers(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_key_fk FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE`,
  `ALTER TABLE as_grants ADD CONSTRAINT as_grants_right_fk FOREIGN KEY (right_id) REFERENCES grants(id) ON DELETE CASCADE`,
  `ALTER TABLE as_records ADD CONSTRAINT as_records_grant_fk FOREIGN KEY (grant_id) REFERENCES as_grants(id) ON DELETE CASCADE`,
];

/** Functions and the triggers that call them. */
const triggers = [
  `CREATE OR REPLACE FUNCTION connections_lose_server()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        NEW."status_state" := 'error';
        NEW."status_reason" := 'server_deleted';
        NEW."status_message" := 'The server ' || NEW."server_name" || ' was deleted. One that is registered anew under this name is another server: connect to it.';
        NEW."status_inputs" := NULL;
        NEW."status_since" := now();
        NEW."status_seen_at" := now();
        NEW."next_check_at" := NULL;
        NEW."check_failures" := 0;
        RETURN NEW;
      END $function$`,
  `CREATE OR REPLACE FUNCTION forget_upstream_credentials()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        DELETE FROM "pending_authorizations" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        DELETE FROM "upstream_credentials" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        DELETE FROM "oauth_clients" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        RETURN NULL;
      END $function$`,
  `CREATE OR REPLACE FUNCTION note_blob_garbage()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
       BEGIN
         INSERT INTO blob_garbage SELECT DISTINCT hash FROM gone ON CONFLICT DO NOTHING;
         RETURN NULL;
       END $function$`,
  `CREATE OR REPLACE FUNCTION note_deleted_invocation_owner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
       BEGIN
         INSERT INTO deleted_invocation_owners (owner_id, kind) SELECT id, TG_ARGV[0] FROM gone ON CONFLICT DO NOTHING;
         RETURN NULL;
       END $function$`,
  `CREATE OR REPLACE FUNCTION servers_fill_search()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
   DECLARE
     space text := (SELECT name FROM namespaces WHERE id = NEW.namespace_id);
     tools text := (SELECT string_agg(left(tool ->> 'name', 200), ' ') FROM jsonb_array_elements(
       CASE jsonb_typeof(NEW.snapshot -> 'tools') WHEN 'array' THEN NEW.snapshot -> 'tools' ELSE '[]' END) AS tool);
   BEGIN
     NEW.search_names := servers_lexemes(CASE NEW.name WHEN '' THEN space ELSE NEW.name END, 'A')
       || servers_lexemes(concat_ws(' ', NEW.display_name, CASE NEW.name WHEN '' THEN NULL ELSE space END), 'B');
     NEW.search := NEW.search_names || servers_lexemes(NEW.description, 'C') || servers_lexemes(left(tools, 40000), 'D');
     NEW.search_words := servers_words(concat_ws(' ', space, NEW.name, NEW.display_name));
     RETURN NEW;
   END
   $function$`,
  `CREATE OR REPLACE FUNCTION servers_words(given text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
     SELECT translate(given || ' ' || regexp_replace(given, '([a-z0-9])([A-Z])', '\\1 \\2', 'g'), '/_.:@-', '      ')
   $function$`,
  `CREATE OR REPLACE FUNCTION servers_lexemes(given text, weight "char")
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
     SELECT setweight(to_tsvector('simple', words) || to_tsvector('english', words), weight)
       FROM (SELECT servers_words(coalesce(given, '')) AS words) spelled
   $function$`,
  `CREATE OR REPLACE FUNCTION releases_count()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
       BEGIN
         NEW.number := coalesce(NEW.number, (SELECT max(number) FROM releases WHERE server_id = NEW.server_id) + 1, 1);
         RETURN NEW;
       END $function$`,
  `CREATE TRIGGER releases_count BEFORE INSERT ON releases FOR EACH ROW EXECUTE FUNCTION releases_count()`,
  `CREATE TRIGGER connections_forget_credentials AFTER DELETE ON connections FOR EACH ROW EXECUTE FUNCTION forget_upstream_credentials('connection')`,
  `CREATE TRIGGER connections_leave_invocations AFTER DELETE ON connections REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_invocation_owner('connection')`,
  `CREATE TRIGGER connections_lose_server BEFORE UPDATE OF server_id ON connections FOR EACH ROW WHEN (((old.server_id IS NOT NULL) AND (new.server_id IS NULL) AND (new.mock IS NULL))) EXECUTE FUNCTION connections_lose_server()`,
  `CREATE TRIGGER release_artifacts_garbage AFTER DELETE ON release_artifacts REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_blob_garbage()`,
  `CREATE TRIGGER servers_fill_search BEFORE INSERT OR UPDATE OF name, namespace_id, display_name, description, snapshot ON servers FOR EACH ROW EXECUTE FUNCTION servers_fill_search()`,
  `CREATE TRIGGER servers_forget_credentials AFTER DELETE ON servers FOR EACH ROW EXECUTE FUNCTION forget_upstream_credentials('server')`,
  `CREATE TRIGGER servers_leave_invocations AFTER DELETE ON servers REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_invocation_owner('server')`,
  `CREATE TRIGGER skills_search_words BEFORE INSERT OR UPDATE OF slug, name, description ON skills FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('search', 'pg_catalog.english', 'slug', 'name', 'description')`,
];

/** The whole schema of version 0.1.0. */
export class Baseline1795490000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...extensions, ...tables, ...foreignKeys, ...triggers]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    const named = (pattern: RegExp) => [...tables, ...triggers].flatMap((sql) => pattern.exec(sql)?.[1] ?? []).join();
    await runner.query(`DROP TABLE ${named(/^CREATE TABLE (\w+)/)} CASCADE`);
    await runner.query(`DROP FUNCTION ${named(/^CREATE OR REPLACE FUNCTION (\w+)/)}`);
  }
}
