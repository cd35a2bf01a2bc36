/* dayfly completion: scripts for bash, zsh and fish. The scripts get all candidates from this
 * program (complete.h), so that only one table exists. */
#include "spawner/cli/complete.h"

#include "spawner/cli/commands.h"

/* bash splits words at = and :. The script joins them again. */
static const char bash_script[] =
    "# bash completion of dayfly: source <(dayfly completion bash)\n"
    "_dayfly() {\n"
    "    local word joined='' trim directive='' cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    local -a words=()\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD}\"; do\n"
    "        if [[ ${#words[@]} -gt 0 && ( $word == [=:] || $joined ) ]]; then\n"
    "            words[-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        [[ $word == [=:] ]] && joined=yes || joined=''\n"
    "    done\n"
    "    [[ $cur == [=:] ]] && cur=''\n"
    "    trim=${words[-1]%\"${words[-1]##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word _; do\n"
    "        case $word in\n"
    "        :*) directive=$word ;;\n"
    "        *) COMPREPLY+=(\"${word#\"$trim\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"$1\" " DF_COMPLETE_WORD " \"${words[@]}\" 2>/dev/null)\n"
    "    case $directive in\n"
    "    :files) word=-f ;;\n"
    "    :dirs) word=-d ;;\n"
    "    *) word='' ;;\n"
    "    esac\n"
    "    if [[ $word ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen \"$word\" -- \"$cur\")\n"
    "    elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "complete -F _dayfly dayfly\n";

static const char zsh_script[] =
    "#compdef dayfly\n"
    "# zsh completion of dayfly: source <(dayfly completion zsh)\n"
    "_dayfly() {\n"
    "    local line word directive=''\n"
    "    local -a found shown open\n"
    "    while IFS= read -r line; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        case $word in\n"
    "        :*) directive=$word ;;\n"
    "        */|*=) open+=(\"$word\") ;;\n"
    "        *) found+=(\"$word\"); shown+=(\"${line/$'\\t'/  -- }\") ;;\n"
    "        esac\n"
    "    done < <(\"${(Q)words[1]}\" " DF_COMPLETE_WORD
    " \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)\n"
    "    (( $#found )) && compadd -l -d shown -a found\n"
    "    (( $#open )) && compadd -S '' -a open\n"
    "    [[ $PREFIX == --*=* && $directive != :none ]] && compset -P '*='\n"
    "    case $directive in\n"
    "    :files) _files ;;\n"
    "    :dirs) _files -/ ;;\n"
    "    esac\n"
    "    return 0\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _dayfly ]; then\n"
    "    _dayfly \"$@\"\n"
    "else\n"
    "    compdef _dayfly dayfly\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of dayfly: dayfly completion fish | source\n"
    "function __dayfly_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l cur (commandline -ct)\n"
    "    set -l program $words[1]\n"
    "    set -e words[1]\n"
    "    for line in ($program " DF_COMPLETE_WORD " $words \"$cur\" 2>/dev/null)\n"
    "        set -l before (string match -r -- '^--[^=]+=' \"$cur\")\n"
    "        set -l rest (string replace -r -- '^--[^=]+=' '' \"$cur\")\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                for path in (__fish_complete_path \"$rest\")\n"
    "                    printf '%s%s\\n' \"$before\" $path\n"
    "                end\n"
    "            case ':dirs'\n"
    "                for path in (__fish_complete_directories \"$rest\")\n"
    "                    printf '%s%s\\n' \"$before\" $path\n"
    "                end\n"
    "            case ':none'\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c dayfly -e\n"
    "complete -c dayfly -f -a '(__dayfly_complete)'\n";

int df_cmd_completion(struct df_cli *cli, struct df_err *err)
{
    static const struct {
        const char *shell;
        const char *script;
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(shells); i++)
        if (df_streq(shells[i].shell, df_cli_word(cli, 0)))
            return df_cli_print(shells[i].script, err);
    return df_fail(err, DF_ERR_USER, "shell \"%s\": there are bash, zsh and fish",
                   df_cli_word(cli, 0));
}
