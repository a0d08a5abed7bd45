import { isObject } from '../../../../platform/text/json.js';
import { plainName } from './names.js';
import { schemaCheck, type SchemaCheck } from './schema-check.js';
import { choicesOf, mergedSchema } from './schema-parts.js';
import { listPlace, thingPlace, type Place } from './schema-places.js';
import type { FrozenServer, Item } from './simulator.js';
import { idNames, labelNames, meaningOf, propertiesOf, type Deed, type ToolMeaning } from './tool-meaning.js';

/** One tool of a frozen server. What takes time is found out when it is first asked for. */
export class ToolModel {
  readonly name: string;
  readonly meaning: ToolMeaning | null;
  private checks: { input: SchemaCheck | null; output: SchemaCheck | null } | null = null;

  /** @param inferred what its answers looked like, where it declares nothing */
  constructor(
    readonly tool: Item,
    private readonly inferred: Item | null = null,
  ) {
    this.name = String(tool.name);
    this.meaning = meaningOf(tool);
  }

  /** What its answers must satisfy; null when nothing is known of them. */
  get outputSchema(): Item | null {
    return outputSchemaOf(this.tool, this.inferred);
  }

  get checkInput(): SchemaCheck | null {
    return this.compiled().input;
  }

  get checkOutput(): SchemaCheck | null {
    return this.compiled().output;
  }

  private compiled(): { input: SchemaCheck | null; output: SchemaCheck | null } {
    this.checks ??= {
      input: schemaCheck(this.tool.inputSchema),
      output: schemaCheck(this.outputSchema),
    };
    return this.checks;
  }
}

/** The schema of a tool's structured answers: the declared one, else what they looked like. Such answers are objects. */
export function outputSchemaOf(tool: Item, inferred: Item | null): Item | null {
  if (isObject(tool.outputSchema)) return tool.outputSchema;
  return inferred?.type === 'object' ? inferred : null;
}

/** One kind of things a server keeps. */
export interface KindModel {
  kind: string;
  /** How one of them is described best, with the schema its references are about. */
  view: Place & { root: unknown };
  /** Everything the tools say of one, by property: schemas. */
  properties: Item;
  /** What creating one may say, in plain form. */
  creatable: ReadonlySet<string>;
  /** The schema of its id; undefined when no tool names one. */
  idSchema: Item | undefined;
  /** The property that holds its name. */
  label: string;
  /** The state a thing is in at first, by the property that holds it; empty where no schema lists states. */
  firstState: Item;
}

/** What a frozen server's tools are, and the things they are about. */
export class ServerModel {
  readonly tools: ReadonlyMap<string, ToolModel>;
  /** Kinds that are kept: something can be created, or several tools are about them. */
  readonly kinds: ReadonlyMap<string, KindModel>;

  constructor(server: FrozenServer) {
    const modelOf = (tool: Item) => new ToolModel(tool, server.inferred?.[String(tool.name)]);
    this.tools = new Map((server.tools ?? []).map((tool) => [String(tool.name), modelOf(tool)]));
    this.kinds = new Map(
      [...this.byKind()].filter(([, tools]) => isKept(tools)).map(([kind, tools]) => [kind, toKind(kind, tools)]),
    );
  }

  private byKind(): Map<string, ToolModel[]> {
    const found = new Map<string, ToolModel[]>();
    for (const tool of this.tools.values()) {
      if (!tool.meaning) continue;
      const { kind } = tool.meaning;
      found.set(kind, [...(found.get(kind) ?? []), tool]);
    }
    return found;
  }
}

/** A word that only one tool uses may mean anything; `create_…` means what it says. */
function isKept(tools: ToolModel[]): boolean {
  const deeds = new Set(tools.map(({ meaning }) => meaning?.deed));
  const isCreated = tools.some(({ tool, meaning }) => {
    return meaning?.deed === 'create' && Object.keys(propertiesOf(tool.inputSchema)).length > 0;
  });
  return deeds.size > 1 || (isCreated && /create|insert|new|register/i.test(tools[0]?.name ?? ''));
}

function ofDeed(tools: ToolModel[], ...deeds: Deed[]): ToolModel[] {
  return deeds.flatMap((deed) => tools.filter(({ meaning }) => meaning?.deed === deed));
}

function toKind(kind: string, tools: ToolModel[]): KindModel {
  const inputs = ofDeed(tools, 'create', 'update').map(({ tool }) => propertiesOf(tool.inputSchema));
  const view = viewOf(kind, tools);
  const properties = Object.assign({}, ...inputs, propertiesOf(view.schema, view.root)) as Item;
  const created = ofDeed(tools, 'create').flatMap(({ tool }) => Object.keys(propertiesOf(tool.inputSchema)));
  const plain = new Map(Object.keys(properties).map((name) => [plainName(name), name]));
  const label = labelNames(kind).find((name) => plain.has(name));
  return {
    kind,
    view,
    properties,
    creatable: new Set(created.map(plainName)),
    idSchema: idSchemaOf(kind, tools, view),
    label: (label === undefined ? undefined : plain.get(label)) ?? 'name',
    firstState: firstStateOf(properties, view.root),
  };
}

/** States in which things begin, in plain form. */
const BEGINNING = /^(open|new|active|todo|pending|draft|queued|created|backlog)$/;

function firstStateOf(properties: Item, root: unknown): Item {
  for (const [name, schema] of Object.entries(properties)) {
    const states = choicesOf(mergedSchema(schema, root));
    if (states.length === 0 || !/^(state|status)$/i.test(name)) continue;
    return { [name]: states.find((one) => BEGINNING.test(plainName(one))) ?? states[0] };
  }
  return {};
}

function viewOf(kind: string, tools: ToolModel[]): KindModel['view'] {
  for (const tool of ofDeed(tools, 'get', 'list', 'search', 'create', 'update')) {
    const root = tool.outputSchema;
    if (!root) continue;
    const isMany = tool.meaning?.deed === 'list' || tool.meaning?.deed === 'search';
    const place = isMany ? listPlace(root, kind) : thingPlace(root, kind);
    if (place && Object.keys(propertiesOf(place.schema, root)).length > 1) return { ...place, root };
  }
  const inputs = ofDeed(tools, 'create', 'update').map(({ tool }) => propertiesOf(tool.inputSchema));
  const properties = Object.assign({ id: {} }, ...inputs) as Item;
  const schema = { type: 'object', properties };
  return { path: [], schema, root: ofDeed(tools, 'create', 'update')[0]?.tool.inputSchema ?? schema };
}

/** As callers give it, else as answers hold it. */
function idSchemaOf(kind: string, tools: ToolModel[], view: KindModel['view']): Item | undefined {
  for (const { tool, meaning } of ofDeed(tools, 'get', 'update', 'delete')) {
    const name = meaning?.idArgument;
    if (name == null || !idNames(kind).includes(plainName(name))) continue;
    return mergedSchema(propertiesOf(tool.inputSchema)[name], tool.inputSchema);
  }
  const properties = propertiesOf(view.schema, view.root);
  for (const wanted of idNames(kind)) {
    const name = Object.keys(properties).find((one) => plainName(one) === wanted);
    if (name !== undefined) return mergedSchema(properties[name], view.root);
  }
  return undefined;
}
