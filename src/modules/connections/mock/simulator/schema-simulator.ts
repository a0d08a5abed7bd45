import { canonicalJson } from '../../../../platform/text/json.js';
import { plainName } from './names.js';
import { failureFor } from './scenario-failures.js';
import { parseScenario, type Scenario } from './scenario.js';
import { satisfyingValue, UnsatisfiableError } from './schema-value.js';
import { ServerModel, type ToolModel } from './server-model.js';
import {
  errorResult,
  structuredResult,
  type Answered,
  type AskedCall,
  type Answerer,
  type FrozenServer,
  type Item,
  type Moment,
  type SimulatedCall,
  type Simulator,
  type ToolResult,
} from './simulator.js';
import { ThingDeeds } from './thing-deeds.js';
import { ThingKeeper } from './thing-keeper.js';
import { counted, emptyWorld, withThing, type World } from './world.js';

/** What a mock is made from. Equal ones give equal answers. */
export interface MockSeed {
  seed: string;
  /** Free text; null when none was given. */
  scenario: string | null;
}

/**
 * Answers by the schemas of a server alone: no network, no clock, no chance. An answer is a function of seed, scenario and
 * the calls before it. What was created is found, what was deleted is gone.
 */
export class SchemaSimulator implements Simulator {
  readonly model: ServerModel;
  private readonly scenario: Scenario;
  private readonly seed: string;
  private readonly keepers = new Map<string, ThingKeeper>();

  constructor(server: FrozenServer, { seed, scenario }: MockSeed) {
    this.model = new ServerModel(server);
    this.scenario = parseScenario(scenario ?? '', this.model);
    this.seed = `${seed}\0${scenario ?? ''}`;
  }

  /** Where everything begins. */
  get firstWorld(): World {
    let world = emptyWorld;
    for (const [kind, things] of this.scenario.things) {
      const keeper = this.keeper(kind);
      for (const { id, ...given } of things) {
        if (keeper) world = withThing(world, kind, keeper.make(world, given, id));
      }
    }
    return world;
  }

  /** Why a call is refused before anything else, in the words of real servers; null when its arguments are allowed. */
  refusal({ tool: name, arguments: given }: AskedCall): ToolResult | null {
    const fault = this.tool(name).checkInput?.(given) ?? null;
    const said = `MCP error -32602: Input validation error: Invalid arguments for tool ${name}: ${fault}`;
    return fault === null ? null : errorResult(said);
  }

  prepare(call: SimulatedCall): Promise<Answerer> {
    return Promise.resolve(this.answerer(call));
  }

  /** What {@link prepare} gives, at once. */
  answerer(call: AskedCall): Answerer {
    return (moment) => {
      const refused = this.refused(call, moment);
      if (refused) return refused;
      const { result, world } = this.carriedOut(this.tool(call.tool), call.arguments, moment.world);
      return { result, world: counted(world, call.tool) };
    };
  }

  /** A call that did nothing but happen: its arguments are wrong, or the scenario makes it fail. Null for all others. */
  refused(call: AskedCall, moment: Moment): Answered | null {
    const result = this.refusal(call) ?? this.failure(call.tool, moment);
    return result && { result, world: counted(moment.world, call.tool) };
  }

  private failure(name: string, { seq, world }: Moment): ToolResult | null {
    const message = failureFor(this.scenario.failures, this.tool(name), { seq, world });
    return message === null ? null : errorResult(message);
  }

  private carriedOut(tool: ToolModel, given: Item, world: World): Answered {
    const seed = `${this.seed}\0${tool.name}\0${canonicalJson(given)}`;
    const keeper = tool.meaning ? this.keeper(tool.meaning.kind) : undefined;
    try {
      return (
        (keeper && new ThingDeeds(keeper, tool, seed).carryOut(given, world)) ?? {
          result: madeUp(tool, given, seed),
          world,
        }
      );
    } catch (error) {
      if (!(error instanceof UnsatisfiableError)) throw error;
      const why = 'its output schema asks for something the simulator cannot make.';
      return { result: errorResult(`The simulated tool ${tool.name} has no answer: ${why}`), world };
    }
  }

  private tool(name: string): ToolModel {
    const tool = this.model.tools.get(name);
    if (!tool) throw new Error(`The simulated server has no tool ${name}`);
    return tool;
  }

  private keeper(kind: string): ThingKeeper | undefined {
    const model = this.model.kinds.get(kind);
    if (!model) return undefined;
    const known = this.keepers.get(kind) ?? new ThingKeeper(model, this.seed);
    this.keepers.set(kind, known);
    return known;
  }
}

/** An answer of a tool that keeps nothing: made from its schema and the arguments, else the arguments told back. */
function madeUp(tool: ToolModel, given: Item, seed: string): ToolResult {
  if (tool.outputSchema) return structuredResult(satisfyingValue(tool.outputSchema, tool.checkOutput, { seed, given }));
  const words = Object.entries(given).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const said =
    words.length === 1 && isEcho(tool, given) ? String(Object.values(given)[0]) : `${tool.name} (${words.join(', ')})`;
  return { content: [{ type: 'text', text: words.length === 0 ? `${tool.name}: done.` : said }] };
}

function isEcho({ name }: ToolModel, given: Item): boolean {
  return (
    /echo|say|print/i.test(name) &&
    Object.entries(given).some(([one]) => /^(message|text|input|value)$/.test(plainName(one)))
  );
}
