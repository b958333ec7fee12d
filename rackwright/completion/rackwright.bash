# bash completion of rackwright; made by: rackwright completion bash

_rackwright() {
    local -a lines
    local current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == [=:] ]] && current=
    mapfile -t lines < <(
        "${COMP_WORDS[0]/#\~/$HOME}" completion answer bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null
    )
    COMPREPLY=("${lines[@]:1}")
    case ${lines[0]-none} in
        any) compopt -o default ;;
        yaml)
            compopt -o filenames
            local -a files
            mapfile -t files < <(compgen -f -X '!*.yaml' -- "$current"; compgen -f -X '!*.yml' -- "$current"; compgen -d -- "$current")
            COMPREPLY+=("${files[@]}")
            ;;
        folders) compopt -o dirnames ;;
    esac
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}

complete -F _rackwright rackwright
