/**
 * Tools, resources and prompts of both fixture servers of the conformance run. The official suite prescribes their names
 * and answers. They are described without the terms of either protocol era.
 *
 * A tool answers with `run(call)`, or asks the caller first: `rounds` gives for each round the requests by key (they
 * have the same shape in both eras), and `finish(answers)` the result. The old era sends them as requests of its own
 * during the call, the new one answers `input_required`.
 */

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

/** The pause between two messages of one call, so that they arrive one by one. */
const pauseMs = 50;
const pause = () => new Promise((resolve) => setTimeout(resolve, pauseMs));

const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: png, mimeType: 'image/png' };
const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });
const content = (...blocks) => ({ content: blocks });
const object = (properties = {}, required = []) => ({ type: 'object', properties, required });
const string = (description) => ({ type: 'string', description });

const elicit = (message, requestedSchema) => ({ method: 'elicitation/create', params: { message, requestedSchema } });
const sample = (prompt) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 },
});
const roots = { method: 'roots/list', params: {} };
const askName = elicit('What is your name?', object({ name: { type: 'string' } }, ['name']));
const confirm = elicit('Please confirm.', object({ ok: { type: 'boolean' } }, ['ok']));

const said = (answer) => `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

// ---- Tools that answer at once.

const plainTools = [
  ['test_simple_text', 'Answers with text.', content(text('This is a simple text response for testing.'))],
  ['test_image_content', 'Answers with an image.', content(image)],
  ['test_audio_content', 'Answers with a sound.', content({ type: 'audio', data: wav, mimeType: 'audio/wav' })],
  [
    'test_embedded_resource',
    'Answers with an embedded resource.',
    content(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  ],
  [
    'test_multiple_content_types',
    'Answers with text, an image and an embedded resource.',
    content(
      text('Multiple content types test:'),
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  ],
  ['test_streaming_elicitation', 'Answers without asking anything.', content(text('Nothing was asked.'))],
].map(([name, description, result]) => ({ name, description, inputSchema: object(), run: () => result }));

const schema202012 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// ---- Tools that do something during the call.

const activeTools = [
  {
    name: 'test_error_handling',
    description: 'Fails.',
    inputSchema: object(),
    run: () => ({ ...content(text('This tool intentionally returns an error for testing')), isError: true }),
  },
  {
    name: 'test_tool_with_logging',
    description: 'Logs three times during the call.',
    inputSchema: object(),
    run: async ({ log }) => {
      await log('info', 'Tool execution started');
      await pause();
      await log('info', 'Tool processing data');
      await pause();
      await log('info', 'Tool execution completed');
      return content(text('Logged three times.'));
    },
  },
  {
    name: 'test_logging_tool',
    description: 'Logs once during the call.',
    inputSchema: object(),
    run: async ({ log }) => {
      await log('info', 'test_logging_tool ran');
      return content(text('Logged once.'));
    },
  },
  {
    name: 'test_tool_with_progress',
    description: 'Reports progress three times to callers who asked for it.',
    inputSchema: object(),
    run: async ({ progress, progressToken }) => {
      for (const done of [0, 50, 100]) {
        await progress(done, 100);
        await pause();
      }
      return content(text(String(progressToken ?? 'no progress was asked for')));
    },
  },
  {
    name: 'test_reconnection',
    description: 'Drops the stream of the call before its answer, where the era lets a caller come back for it.',
    inputSchema: object(),
    run: async ({ dropStream }) => {
      dropStream();
      await pause();
      return content(text('The stream was dropped before this answer.'));
    },
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Tells listeners that the list of tools changed.',
    inputSchema: object(),
    run: async ({ changed }) => {
      await changed('tools');
      return content(text('Listeners were told.'));
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Tells listeners that the list of prompts changed.',
    inputSchema: object(),
    run: async ({ changed }) => {
      await changed('prompts');
      return content(text('Listeners were told.'));
    },
  },
  {
    name: 'json_schema_2020_12_tool',
    description: 'Has an input schema with the keywords of JSON Schema 2020-12.',
    inputSchema: schema202012,
    run: ({ args }) => content(text(JSON.stringify(args))),
  },
  {
    name: 'test_x_mcp_header',
    description: 'Has an argument that is also sent as a header.',
    inputSchema: object({ region: { ...string('Where.'), 'x-mcp-header': 'Region' }, level: { type: 'integer' } }),
    run: ({ args }) => content(text(`region=${args.region ?? 'none'}`)),
  },
];

// ---- Tools that ask the caller.

const defaultsForm = object({
  name: { ...string('Name'), default: 'John Doe' },
  age: { type: 'integer', description: 'Age', default: 30 },
  score: { type: 'number', description: 'Score', default: 95.5 },
  status: { ...string('Status'), enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', description: 'Verified', default: true },
});

const titled = (...titles) => titles.map((title, index) => ({ const: `value${index + 1}`, title }));
const options = ['option1', 'option2', 'option3'];
const enumsForm = object({
  untitledSingle: { ...string('One option'), enum: options },
  titledSingle: { ...string('One titled option'), oneOf: titled('First Option', 'Second Option', 'Third Option') },
  legacyEnum: {
    ...string('One option, titled the old way'),
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: options } },
  titledMulti: {
    type: 'array',
    minItems: 1,
    maxItems: 3,
    items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') },
  },
});

/** Only what the caller says it can answer. */
const askWhatIsDeclared = ({ capabilities }) => ({
  ...(capabilities.elicitation && { elicit_input: askName }),
  ...(capabilities.sampling && { sample_input: sample('Generate a greeting') }),
});

const askingTools = [
  {
    name: 'test_sampling',
    description: 'Asks for a completion of the prompt.',
    inputSchema: object({ prompt: string('What to complete.') }, ['prompt']),
    rounds: [({ args }) => ({ completion: sample(args.prompt) })],
    finish: ({ completion }) => content(text(`LLM response: ${completion.content.text}`)),
  },
  {
    name: 'test_elicitation',
    description: 'Asks the user something.',
    inputSchema: object({ message: string('What to ask.') }, ['message']),
    rounds: [({ args }) => ({ form: elicit(args.message, object({ response: string('Your answer') }, ['response'])) })],
    finish: ({ form }) => content(text(`User response: ${said(form)}`)),
  },
  {
    name: 'test_elicitation_sep1034_defaults',
    description: 'Asks the user to fill in a form with defaults.',
    inputSchema: object(),
    rounds: [() => ({ form: elicit('Please review the form.', defaultsForm) })],
    finish: ({ form }) => content(text(`Elicitation completed: ${said(form)}`)),
  },
  {
    name: 'test_elicitation_sep1330_enums',
    description: 'Asks the user to select from every kind of list.',
    inputSchema: object(),
    rounds: [() => ({ form: elicit('Please select.', enumsForm) })],
    finish: ({ form }) => content(text(`Elicitation completed: ${said(form)}`)),
  },
  {
    name: 'test_missing_capability',
    description: 'Asks for a completion, whoever calls.',
    inputSchema: object(),
    rounds: [() => ({ completion: sample('Say: pong') })],
    finish: () => content(text('The caller can complete.')),
  },
  {
    name: 'test_input_required_result_elicitation',
    description: 'Asks for a name.',
    inputSchema: object(),
    rounds: [() => ({ user_name: askName })],
    finish: ({ user_name }) => content(text(`Hello, ${user_name.content?.name}!`)),
  },
  {
    name: 'test_input_required_result_sampling',
    description: 'Asks for a completion.',
    inputSchema: object(),
    rounds: [() => ({ sample_request: sample('What is the capital of France?') })],
    finish: ({ sample_request }) => content(text(`Sampling result: ${sample_request.content.text}`)),
  },
  {
    name: 'test_input_required_result_list_roots',
    description: 'Asks for the roots.',
    inputSchema: object(),
    rounds: [() => ({ roots_request: roots })],
    finish: ({ roots_request }) => content(text(`Found ${roots_request.roots.length} root(s)`)),
  },
  {
    name: 'test_input_required_result_request_state',
    description: 'Asks for a confirmation, and wants its state back.',
    inputSchema: object(),
    hasState: true,
    rounds: [() => ({ confirm })],
    finish: () => content(text('state-ok: the state came back')),
  },
  {
    name: 'test_input_required_result_tampered_state',
    description: 'Asks for a confirmation, and wants its state back as it was.',
    inputSchema: object(),
    hasState: true,
    rounds: [() => ({ confirm })],
    finish: () => content(text('The state came back as it was.')),
  },
  {
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks for a name, a completion and the roots at once.',
    inputSchema: object(),
    hasState: true,
    rounds: [() => ({ user_name: askName, greeting: sample('Generate a greeting'), client_roots: roots })],
    finish: ({ user_name, greeting, client_roots }) =>
      content(text(`${greeting.content.text} ${user_name.content?.name}, ${client_roots.roots.length} root(s)`)),
  },
  {
    name: 'test_input_required_result_multi_round',
    description: 'Asks for a name, then for a color.',
    inputSchema: object(),
    hasState: true,
    rounds: [
      () => ({ step1: elicit('Step 1: what is your name?', object({ name: { type: 'string' } }, ['name'])) }),
      () => ({ step2: elicit('Step 2: which color?', object({ color: { type: 'string' } }, ['color'])) }),
    ],
    finish: ({ step1, step2 }) => content(text(`${step1.content?.name} likes ${step2.content?.color}`)),
  },
  {
    name: 'test_input_required_result_capabilities',
    description: 'Asks only for what the caller can answer.',
    inputSchema: object(),
    rounds: [askWhatIsDeclared],
    finish: (answers) => content(text(`Answered: ${Object.keys(answers).join(', ') || 'nothing was asked'}`)),
  },
];

export const tools = [...plainTools, ...activeTools, ...askingTools];

// ---- Resources.

const resource = (name, mimeType, description) => ({ uri: `test://${name}`, name, description, mimeType });

export const resources = [
  resource('static-text', 'text/plain', 'A text.'),
  resource('static-binary', 'image/png', 'An image.'),
  resource('watched-resource', 'text/plain', 'A text that can be subscribed to.'),
];

export const resourceTemplates = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'A text about an id.',
    mimeType: 'application/json',
  },
];

/** The content at a URI; undefined when there is none. */
export function contentAt(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id !== undefined) {
    const about = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri, mimeType: 'application/json', text: about }] };
  }
  const found = resources.find((each) => each.uri === uri);
  if (!found) return undefined;
  const { mimeType } = found;
  const body = mimeType === 'image/png' ? { blob: png } : { text: `This is the content of ${found.name}.` };
  return { contents: [{ uri, mimeType, ...body }] };
}

// ---- Prompts.

const message = (block) => ({ role: 'user', content: block });
const argument = (name) => ({ name, description: `The argument ${name}.`, required: true });

export const prompts = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments.',
    run: () => ({ messages: [message(text('This is a simple prompt for testing.'))] }),
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments.',
    arguments: [argument('arg1'), argument('arg2')],
    run: ({ arg1, arg2 }) => ({ messages: [message(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))] }),
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that embeds a resource.',
    arguments: [argument('resourceUri')],
    run: ({ resourceUri }) => ({
      messages: [
        message(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
        message(text('Please process the embedded resource above.')),
      ],
    }),
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt with an image.',
    run: () => ({ messages: [message(image), message(text('Please analyze the image above.'))] }),
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'A prompt that asks for its context.',
    rounds: [() => ({ user_context: elicit('Which context?', object({ context: { type: 'string' } }, ['context'])) })],
    finish: ({ user_context }) => ({ messages: [message(text(`Context: ${user_context.content?.context}`))] }),
  },
];

/** No suggestions, but the request is served. */
export const completion = { completion: { values: [], total: 0, hasMore: false } };
