/** The tools of an issue tracker, as its server lists them. */
const issue = {
  type: 'object',
  required: ['id', 'title', 'state', 'created_at'],
  properties: {
    id: { type: 'integer' },
    title: { type: 'string' },
    body: { type: ['string', 'null'] },
    state: { type: 'string', enum: ['open', 'closed'] },
    assignee: { type: 'string' },
    created_at: { type: 'string', format: 'date-time' },
  },
  additionalProperties: false,
};
const user = {
  type: 'object',
  required: ['id', 'name', 'email'],
  properties: {
    id: { type: 'string', format: 'uuid' },
    name: { type: 'string' },
    email: { type: 'string', format: 'email' },
    is_admin: { type: 'boolean' },
  },
};
const byId = { type: 'object', required: ['issue_id'], properties: { issue_id: { type: 'integer' } } };

/** A tracker whose tools declare output schemas, except for the notes. */
export const trackerTools = [
  {
    name: 'create_issue',
    inputSchema: {
      type: 'object',
      required: ['title'],
      properties: {
        title: { type: 'string', minLength: 1 },
        body: { type: 'string' },
        assignee: { type: 'string' },
        state: { enum: ['open', 'closed'], default: 'open' },
      },
      additionalProperties: false,
    },
    outputSchema: { type: 'object', required: ['issue'], properties: { issue } },
  },
  { name: 'get_issue', inputSchema: byId, outputSchema: issue },
  {
    name: 'list_issues',
    inputSchema: {
      type: 'object',
      properties: {
        state: { enum: ['open', 'closed', 'all'] },
        assignee: { type: 'string' },
        limit: { type: 'integer', minimum: 1, maximum: 100 },
        page: { type: 'integer', minimum: 1 },
      },
    },
    outputSchema: {
      type: 'object',
      required: ['issues', 'total'],
      properties: {
        issues: { type: 'array', items: issue },
        total: { type: 'integer' },
        has_more: { type: 'boolean' },
      },
    },
  },
  {
    name: 'search_issues',
    inputSchema: { type: 'object', required: ['query'], properties: { query: { type: 'string' } } },
    outputSchema: { type: 'object', required: ['results'], properties: { results: { type: 'array', items: issue } } },
  },
  {
    name: 'update_issue',
    inputSchema: {
      type: 'object',
      required: ['issue_id'],
      properties: { issue_id: { type: 'integer' }, title: { type: 'string' }, state: { enum: ['open', 'closed'] } },
    },
    outputSchema: issue,
  },
  { name: 'close_issue', inputSchema: byId, outputSchema: issue },
  {
    name: 'delete_issue',
    inputSchema: byId,
    outputSchema: {
      type: 'object',
      required: ['deleted', 'id'],
      properties: { deleted: { type: 'boolean' }, id: { type: 'integer' } },
    },
  },
  {
    name: 'get_user',
    inputSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    outputSchema: { type: 'object', required: ['user'], properties: { user } },
  },
  {
    name: 'list_users',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'object', required: ['users'], properties: { users: { type: 'array', items: user } } },
  },
  {
    name: 'create_note',
    inputSchema: {
      type: 'object',
      required: ['text'],
      properties: { text: { type: 'string' }, pinned: { type: 'boolean' } },
    },
  },
  { name: 'get_note', inputSchema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } },
  { name: 'list_notes', inputSchema: { type: 'object' } },
  { name: 'list_repos', inputSchema: { type: 'object' } },
  {
    name: 'get_repo',
    inputSchema: {
      type: 'object',
      required: ['owner', 'repo'],
      properties: { owner: { type: 'string' }, repo: { type: 'string' } },
    },
  },
  { name: 'echo', inputSchema: { type: 'object', properties: { message: { type: 'string' } } } },
  {
    name: 'get_weather',
    inputSchema: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
    outputSchema: {
      type: 'object',
      required: ['city', 'temperature', 'conditions'],
      properties: {
        city: { type: 'string' },
        temperature: { type: 'number' },
        conditions: { enum: ['sunny', 'cloudy', 'rain'] },
      },
    },
  },
];

/** The tracker as a mock knows it. */
export const tracker = {
  serverInfo: { name: 'tracker', version: '1.2.3' },
  tools: trackerTools,
  resources: [{ name: 'readme', uri: 'tracker://readme', mimeType: 'text/markdown' }],
  resourceTemplates: [{ name: 'issue', uriTemplate: 'tracker://issues/{id}', mimeType: 'application/json' }],
  prompts: [{ name: 'triage', arguments: [{ name: 'issue', required: true }] }],
};
