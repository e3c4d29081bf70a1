import { type Budget, MOST_DEPTH } from './budget.ts';
import { type FilterContext, filterNamed } from './filters.ts';
import { builtinAttribute } from './methods.ts';
import { OPERATORS } from './operators.ts';
import type {
  Argument,
  Call,
  CallStatement,
  Expression,
  For,
  Macro,
  Member,
  Name,
  Parameter,
  Program,
  SetNode,
  Slice,
  Statement,
} from './syntax.ts';
import { sliceOf } from './slice.ts';
import { nodesOf } from './syntax.ts';
import { testNamed } from './tests.ts';
import {
  type CallArguments,
  Callable,
  demand,
  isDict,
  isNumeric,
  iterate,
  itemsOf,
  LoopState,
  missingAttribute,
  missingItem,
  Namespace,
  PythonError,
  str,
  truth,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** Variables of a block. A name is looked up outwards; `set` writes into the innermost. */
interface Scope {
  readonly variables: Map<string, Value>;
  readonly parent: Scope | null;
}

const inner = (parent: Scope): Scope => ({ variables: new Map(), parent });

/** `{% break %}` and `{% continue %}`, with what the block had printed before. */
class LoopControl extends Error {
  readonly kind: 'Break' | 'Continue';
  printed: string;
  constructor(kind: 'Break' | 'Continue') {
    super(kind);
    this.kind = kind;
    this.printed = '';
  }
}

/**
 * Runs a parsed template with the meaning that jinja2 3.1 and the immutable sandbox of transformers give it.
 * Source: jinja2's environment.py, runtime.py and sandbox.py; checked against the golden renders of the chat fixtures.
 * @throws PythonError, TemplateLimitError
 */
export function runTemplate(program: Program, globals: ReadonlyMap<string, Value>, budget: Budget): string {
  const top: Scope = { variables: new Map(), parent: { variables: new Map(globals), parent: null } };
  return new Interpreter(budget).block(program.body, top);
}

class Interpreter implements FilterContext {
  readonly budget: Budget;
  private depth = 0;
  constructor(budget: Budget) {
    this.budget = budget;
  }

  block(statements: readonly Statement[], scope: Scope): string {
    let out = '';
    for (const statement of statements) {
      try {
        const part = this.statement(statement, scope);
        this.budget.text(part.length);
        out += part;
      } catch (error) {
        if (error instanceof LoopControl) error.printed = out + error.printed;
        throw error;
      }
    }
    return out;
  }

  private statement(node: Statement, scope: Scope): string {
    this.budget.step();
    switch (node.type) {
      case 'If':
        return this.block(truth(this.value(node.test, scope)) ? node.body : node.alternate, scope);
      case 'For':
        return this.loop(node, scope);
      case 'Set':
        this.assign(node, scope);
        return '';
      case 'Macro':
        scope.variables.set(node.name.value, this.macro(node, scope));
        return '';
      case 'CallStatement':
        return str(this.callBlock(node, scope));
      case 'FilterStatement':
        return str(this.filter(this.block(node.body, scope), node.filter, scope));
      case 'Comment':
        return '';
      case 'Break':
      case 'Continue':
        throw new LoopControl(node.type);
      default:
        return str(this.value(node, scope));
    }
  }

  private value(node: Expression, scope: Scope): Value {
    this.budget.step();
    switch (node.type) {
      case 'StringLiteral':
        return node.value;
      case 'IntegerLiteral':
        return BigInt(node.value);
      case 'FloatLiteral':
        return node.value;
      case 'Identifier':
        return this.lookup(node.value, scope);
      case 'MemberExpression':
        return this.member(node, scope);
      case 'CallExpression':
        return this.call(this.value(node.callee, scope), this.arguments(node.args, scope));
      case 'FilterExpression':
        return this.filter(this.value(node.operand, scope), node.filter, scope);
      case 'TestExpression':
        return testNamed(node.test.value)(this.value(node.operand, scope), [], this.budget) !== node.negate;
      case 'BinaryExpression':
        return this.binary(node.operator.value, node.left, node.right, scope);
      case 'UnaryExpression':
        return this.unary(node.operator.value, this.value(node.argument, scope));
      case 'Ternary':
        return this.value(truth(this.value(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope);
      case 'SelectExpression':
        if (truth(this.value(node.test, scope))) return this.value(node.lhs, scope);
        return new Undefined('the inline if-expression evaluated to false and no else section was defined.');
      case 'ArrayLiteral':
        return node.value.map((item) => this.value(item, scope));
      case 'TupleLiteral':
        return new Tuple(node.value.map((item) => this.value(item, scope)));
      case 'ObjectLiteral':
        return this.dict(node.value, scope);
      default:
        throw new PythonError('TemplateSyntaxError', `${(node as { type: string }).type} is not supported`);
    }
  }

  private lookup(name: string, scope: Scope): Value {
    for (let at: Scope | null = scope; at !== null; at = at.parent) {
      const found = at.variables.get(name);
      if (found !== undefined) return found;
    }
    return new Undefined(`'${name}' is undefined`);
  }

  private dict(entries: ReadonlyMap<Expression, Expression>, scope: Scope): Value {
    const out = new Map<string, Value>();
    for (const [key, item] of entries) {
      const name = this.value(key, scope);
      if (typeof name !== 'string')
        throw new PythonError('NotImplementedError', `a dict with a key of type ${typeName(name)} is not supported`);
      out.set(name, this.value(item, scope));
    }
    return out;
  }

  private binary(operator: string, left: Expression, right: Expression, scope: Scope): Value {
    const first = this.value(left, scope);
    if (operator === 'and') return truth(first) ? this.value(right, scope) : first;
    if (operator === 'or') return truth(first) ? first : this.value(right, scope);
    const apply = OPERATORS[operator];
    if (apply === undefined) throw new PythonError('TemplateSyntaxError', `the operator ${operator} is not supported`);
    return apply(first, this.value(right, scope), this.budget);
  }

  private unary(operator: string, value: Value): Value {
    if (operator === 'not') return !truth(value);
    demand(value);
    if (!isNumeric(value))
      throw new PythonError('TypeError', `bad operand type for unary ${operator}: '${typeName(value)}'`);
    const number = typeof value === 'boolean' ? BigInt(value) : value;
    return operator === '-' ? -number : number;
  }

  private member(node: Member, scope: Scope): Value {
    const object = this.value(node.object, scope);
    if (node.property.type === 'SliceExpression') return this.slice(object, node.property, scope);
    if (node.computed) return this.item(object, this.value(node.property, scope));
    if (node.property.type === 'IntegerLiteral') return this.item(object, BigInt(node.property.value));
    return this.attribute(object, (node.property as Name).value);
  }

  /** jinja2's environment.getattr: what the object has of itself first, then its items. */
  private attribute(object: Value, name: string): Value {
    demand(object);
    const own = builtinAttribute(object, name, this.budget);
    if (own !== undefined) return own;
    const found = isDict(object) ? object.get(name) : undefined;
    return found === undefined ? this.absent(object, name) : found;
  }

  /** jinja2's environment.getitem: items first. */
  readonly item = (object: Value, key: Value): Value => {
    demand(object);
    if (isDict(object)) {
      const found = typeof key === 'string' ? object.get(key) : undefined;
      if (found !== undefined) return found;
    }
    if (typeof key === 'bigint' || typeof key === 'boolean') {
      const items = typeof object === 'string' ? Array.from(object) : itemsOf(object);
      const at = Number(key) + (Number(key) < 0 ? (items?.length ?? 0) : 0);
      const found = items?.[at];
      return found === undefined ? this.absent(object, key) : found;
    }
    if (typeof key === 'string') {
      const own = builtinAttribute(object, key, this.budget);
      if (own !== undefined) return own;
    }
    return this.absent(object, key);
  };

  private absent(object: Value, key: Value): Undefined {
    return object instanceof Namespace && typeof key === 'string'
      ? missingAttribute(object, key)
      : missingItem(object, key);
  }

  private slice(object: Value, node: Slice, scope: Scope): Value {
    const bound = (part: Expression | undefined): Value => (part === undefined ? null : this.value(part, scope));
    return sliceOf(object, [bound(node.start), bound(node.stop), bound(node.step)], this.budget);
  }

  private arguments(nodes: readonly Argument[], scope: Scope): CallArguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === 'KeywordArgumentExpression') named.set(node.key.value, this.value(node.value, scope));
      else if (node.type === 'SpreadExpression') positional.push(...iterate(this.value(node.argument, scope)));
      else if (node.type === 'KeywordSpreadExpression') {
        const dict = this.value(node.argument, scope);
        if (!isDict(dict))
          throw new PythonError('TypeError', `argument after ** must be a mapping, not ${typeName(dict)}`);
        for (const [key, item] of dict) named.set(key, item);
      } else positional.push(this.value(node, scope));
    }
    return { positional, named };
  }

  private call(callee: Value, given: CallArguments): Value {
    demand(callee);
    if (!(callee instanceof Callable))
      throw new PythonError('TypeError', `'${typeName(callee)}' object is not callable`);
    return callee.call(given);
  }

  private filter(value: Value, node: Name | Call, scope: Scope): Value {
    if (node.type === 'Identifier') return filterNamed(node.value)(value, NOTHING, this);
    if (node.callee.type !== 'Identifier') throw new PythonError('TemplateSyntaxError', 'a filter needs a name');
    return filterNamed(node.callee.value)(value, this.arguments(node.args, scope), this);
  }

  private assign(node: SetNode, scope: Scope): void {
    const value = node.value === null ? this.block(node.body, inner(scope)) : this.value(node.value, scope);
    const target = node.assignee;
    if (target.type === 'MemberExpression') {
      const object = this.value(target.object, scope);
      if (!(object instanceof Namespace))
        throw new PythonError('TemplateRuntimeError', 'cannot assign attribute on non-namespace object');
      object.attributes.set((target.property as Name).value, value);
    } else this.bind(target, value, scope);
  }

  private bind(target: Expression, value: Value, scope: Scope): void {
    if (target.type === 'Identifier') {
      scope.variables.set(target.value, value);
      return;
    }
    if (target.type !== 'TupleLiteral') throw new PythonError('TemplateSyntaxError', "can't assign to that");
    const items = iterate(value);
    const wanted = target.value.length;
    if (items.length < wanted)
      throw new PythonError('ValueError', `not enough values to unpack (expected ${wanted}, got ${items.length})`);
    if (items.length > wanted) throw new PythonError('ValueError', `too many values to unpack (expected ${wanted})`);
    for (const [index, part] of target.value.entries()) this.bind(part, items[index], scope);
  }

  private loop(node: For, scope: Scope): string {
    const select = node.iterable.type === 'SelectExpression' ? node.iterable : null;
    const all = iterate(this.value(select ? select.lhs : node.iterable, scope));
    const items = select
      ? all.filter((item) => {
          const own = inner(scope);
          this.bind(node.loopvar, item, own);
          return truth(this.value(select.test, own));
        })
      : all;
    if (items.length === 0) return this.block(node.defaultBlock, inner(scope));
    let out = '';
    for (const [at, item] of items.entries()) {
      this.budget.step(ITERATION);
      const own = inner(scope);
      own.variables.set('loop', new LoopState(items, at));
      this.bind(node.loopvar, item, own);
      try {
        out += this.block(node.body, own);
      } catch (error) {
        if (!(error instanceof LoopControl)) throw error;
        out += error.printed;
        if (error.kind === 'Break') break;
      }
    }
    return out;
  }

  /** A macro sees where it was defined, not where it is called. */
  private macro(node: Pick<Macro, 'args' | 'body'> & { readonly name: Name | null }, scope: Scope): Callable {
    const uses = new Set<unknown>();
    for (const part of nodesOf(node.body)) if (part.type === 'Identifier') uses.add(part['value']);
    const label = node.name === null ? 'None' : `'${node.name.value}'`;
    return new Callable((given) => {
      if (this.depth >= MOST_DEPTH) throw new PythonError('RecursionError', 'maximum recursion depth exceeded');
      const own = inner(scope);
      const rest = new Map(given.named);
      for (const [index, parameter] of node.args.entries()) {
        const name = parameterName(parameter);
        const value = index < given.positional.length ? given.positional[index] : rest.get(name);
        rest.delete(name);
        own.variables.set(name, value === undefined ? new Undefined(`parameter '${name}' was not provided`) : value);
        if (value === undefined && parameter.type !== 'Identifier')
          own.variables.set(name, this.value(parameter.value, own));
      }
      const caller = rest.get('caller');
      if (caller !== undefined && uses.has('caller')) {
        own.variables.set('caller', caller);
        rest.delete('caller');
      }
      if (uses.has('kwargs')) own.variables.set('kwargs', rest);
      else if (rest.size > 0)
        throw new PythonError('TypeError', `macro ${label} takes no keyword argument '${[...rest.keys()][0]}'`);
      if (uses.has('varargs')) own.variables.set('varargs', new Tuple(given.positional.slice(node.args.length)));
      else if (given.positional.length > node.args.length)
        throw new PythonError('TypeError', `macro ${label} takes not more than ${node.args.length} argument(s)`);
      this.depth += 1;
      try {
        return this.block(node.body, own);
      } finally {
        this.depth -= 1;
      }
    });
  }

  private callBlock(node: CallStatement, scope: Scope): Value {
    const given = this.arguments(node.call.args, scope);
    const caller = this.macro({ name: null, args: node.callerArgs ?? [], body: node.body }, scope);
    return this.call(this.value(node.call.callee, scope), {
      positional: given.positional,
      named: new Map([...given.named, ['caller', caller]]),
    });
  }
}

/** One round of a loop costs about as much as this many steps. */
const ITERATION = 4;

const NOTHING: CallArguments = { positional: [], named: new Map() };

const parameterName = (parameter: Parameter): string =>
  parameter.type === 'Identifier' ? parameter.value : parameter.key.value;
